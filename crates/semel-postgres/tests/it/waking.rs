//! A caller that waits in one process is woken by another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::{Answer, Loaded, Reply, Store};
use semel::{
    Claim, Decision, HoldAnswer, Lapse, OperatorAnswer, Outcome, Permit, RecordId, ReleaseAnswer, Resolution,
    Semel,
};
use semel_postgres::{CompleteIn, PostgresStore};
use tokio_postgres::{AsyncMessage, Client};

use crate::server::{alone, client, granted, key};

async fn waiters(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM semel_waiters", &[]).await.unwrap().get(0)
}

/// Polls until it is so; a test that waits for ever is ended by its runner.
async fn until(client: &Client, expected: i64) {
    while waiters(client).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_hears_of_a_run_that_ends_in_another_process() {
    let (store, url) = alone().await;
    let here = Semel::new(store.clone());
    let _listening = store.wake_ups(&here);
    let elsewhere = Semel::new(PostgresStore::connect(&url).await.unwrap());
    let key = key("charge");
    let permit = granted(&elsewhere, Claim::new(&key)).await;
    let waiting = tokio::spawn({
        let (here, key) = (here.clone(), key.clone());
        async move { here.claim_or_wait(Claim::new(&key), Duration::from_mins(1)).await }
    });
    let client = client(&url).await;
    until(&client, 1).await;
    permit.complete(Outcome::success("ch_1")).await.unwrap();
    let Decision::Replay(replay) = waiting.await.unwrap().unwrap() else { panic!("the outcome is there") };
    assert_eq!(&replay.outcome().bytes()[..], b"ch_1");
}

/// A store whose loads always show what the first one showed. A caller that waits then learns nothing by polling: it
/// claims again only if it is woken.
struct NeverPolled {
    store: PostgresStore,
    shown: Shown,
}

type Shown = Arc<Mutex<Option<Answer<Vec<Loaded>>>>>;

/// Polls until a caller that waits has been shown the run that it waits for.
async fn until_shown(shown: &Shown) {
    while shown.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
}

impl Store for NeverPolled {
    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let (shown, first) = (Arc::clone(&self.shown), self.store.load(ids));
        Reply::later(async move {
            if let Some(shown) = &*shown.lock().unwrap() {
                return Ok(shown.clone());
            }
            let first = first.await?;
            Ok(shown.lock().unwrap().get_or_insert(first).clone())
        })
    }

    semel_testkit::delegate!(store: swap, sweep, scan);
}

/// The answer of a caller that waits in one process while `settle` ends the run in another.
async fn woken_by(settle: impl AsyncFnOnce(&Semel, Permit, &str)) -> &'static str {
    let (store, url) = alone().await;
    let elsewhere = Semel::new(PostgresStore::connect(&url).await.unwrap());
    let key = key("charge");
    let permit = granted(&elsewhere, Claim::new(&key)).await;
    let shown = Shown::default();
    let never_polled = NeverPolled { store: store.clone(), shown: Arc::clone(&shown) };
    let here = Semel::builder(never_polled).build().unwrap();
    let _listening = store.wake_ups(&here);
    let waiting = tokio::spawn(async move {
        here.claim_or_wait(Claim::new(&key), Duration::from_secs(20)).await.unwrap().as_str()
    });
    until_shown(&shown).await;
    until(&client(&url).await, 1).await;
    settle(&elsewhere, permit, &url).await;
    waiting.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_listener_a_caller_that_learns_nothing_by_polling_is_not_woken() {
    // The control: each of the tests below fails if no notification comes.
    let (store, url) = alone().await;
    let elsewhere = Semel::new(PostgresStore::connect(&url).await.unwrap());
    let key = key("charge");
    let permit = granted(&elsewhere, Claim::new(&key)).await;
    let shown = Shown::default();
    let never_polled = NeverPolled { store, shown: Arc::clone(&shown) };
    let here = Semel::builder(never_polled).build().unwrap();
    let waiting = tokio::spawn(async move {
        here.claim_or_wait(Claim::new(&key), Duration::from_secs(2)).await.unwrap().as_str()
    });
    until_shown(&shown).await;
    permit.release("try later").await.unwrap();
    assert_eq!(waiting.await.unwrap(), "busy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_wakes_a_caller_in_another_process() {
    let release = async |_: &Semel, permit: Permit, _: &str| {
        assert_eq!(permit.release("try later").await.unwrap(), ReleaseAnswer::Released);
    };
    assert_eq!(woken_by(release).await, "run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_wakes_a_caller_in_another_process() {
    let complete = async |_: &Semel, permit: Permit, _: &str| {
        permit.complete(Outcome::success("ch_1")).await.unwrap();
    };
    assert_eq!(woken_by(complete).await, "replay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_wakes_a_caller_in_another_process() {
    let hold = async |_: &Semel, permit: Permit, _: &str| {
        assert_eq!(permit.hold("no answer").await.unwrap(), HoldAnswer::Held);
    };
    assert_eq!(woken_by(hold).await, "held");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_several_permits_wakes_a_caller_in_another_process() {
    let release = async |semel: &Semel, permit: Permit, _: &str| {
        let other = granted(semel, Claim::new(&key("charge"))).await;
        semel.release_all(&[other, permit], "try later").await.unwrap();
    };
    assert_eq!(woken_by(release).await, "run");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_release_wakes_a_caller_in_another_process() {
    let release = async |semel: &Semel, permit: Permit, _: &str| {
        let shown = semel.get(permit.key()).await.unwrap().unwrap();
        let released = semel.release_shown(&shown, "stuck", Some(shown.version.get())).await.unwrap();
        assert_eq!(released, OperatorAnswer::Released);
    };
    assert_eq!(woken_by(release).await, "run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_in_a_transaction_wakes_a_caller_in_another_process_once_it_commits() {
    let complete = async |_: &Semel, permit: Permit, url: &str| {
        let mut client = client(url).await;
        let transaction = client.transaction().await.unwrap();
        permit.complete_in(&transaction, Outcome::success("rolled back")).await.unwrap();
        transaction.rollback().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
        transaction.commit().await.unwrap();
    };
    assert_eq!(woken_by(complete).await, "replay");
}

/// How often a third process hears of the record that is settled meanwhile. Other tests notify on the same server.
async fn heard_of(url: &str, settle: impl AsyncFnOnce() -> RecordId) -> usize {
    let listener = client_that_hears(url).await;
    let settled = settle().await.to_string();
    listener().await.iter().filter(|heard| **heard == settled).count()
}

/// Listens on a connection of its own, and says at the end what it heard.
async fn client_that_hears(url: &str) -> impl AsyncFnOnce() -> Vec<String> {
    let (client, mut connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            drop(tell.send(message));
        }
    });
    client.batch_execute("LISTEN semel_settled").await.unwrap();
    move || async move {
        // What was notified before this answer was sent is here when it is.
        client.batch_execute("SELECT 1").await.unwrap();
        let mut heard = Vec::new();
        while let Ok(message) = told.try_recv() {
            if let AsyncMessage::Notification(note) = message {
                heard.push(note.payload().to_owned());
            }
        }
        heard
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_notifies_only_while_somebody_waits() {
    let (store, url) = alone().await;
    let semel = Semel::new(store);
    let settle = async || {
        let permit = granted(&semel, Claim::new(&key("charge"))).await;
        permit.complete(Outcome::success("ch_1")).await.unwrap();
        permit.key().id()
    };
    assert_eq!(heard_of(&url, &settle).await, 0, "nobody waits");
    let client = client(&url).await;
    let wait = "INSERT INTO semel_waiters VALUES (gen_random_uuid(), clock_timestamp() + interval '1 hour')";
    client.batch_execute(wait).await.unwrap();
    assert_eq!(heard_of(&url, &settle).await, 1, "somebody waits");
    client.batch_execute("UPDATE semel_waiters SET until = clock_timestamp()").await.unwrap();
    assert_eq!(heard_of(&url, &settle).await, 0, "nobody waits any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_resolves_a_held_record_notifies() {
    let (store, url) = alone().await;
    let semel = Semel::new(store);
    let wait = "INSERT INTO semel_waiters VALUES (gen_random_uuid(), clock_timestamp() + interval '1 hour')";
    client(&url).await.batch_execute(wait).await.unwrap();
    let release = Resolution::Release { reason: "it did not land".into() };
    for resolution in [Resolution::Done(Outcome::success("ch_1")), release] {
        let permit = granted(&semel, Claim::new(&key("charge")).lapse(Lapse::Hold)).await;
        permit.hold("no answer").await.unwrap();
        let shown = semel.get(permit.key()).await.unwrap().unwrap();
        let resolve = async || {
            let resolved = semel.resolve_shown(&shown, resolution.clone(), None).await.unwrap();
            assert_eq!(resolved, OperatorAnswer::Resolved);
            permit.key().id()
        };
        assert_eq!(heard_of(&url, resolve).await, 1, "{resolution:?}");
    }
}
