//! A synchronous standby that is cut off: what it does not have is not acknowledged, and not shown.

use std::time::Duration;

use semel::record::Record;
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Permit, Semel};
use semel_postgres::{PostgresStore, RecordOnceIn, migrate};
use test_services::{Link, Postgres, Standby};

use crate::server::{granted, key};

/// How long an ask may take here: long enough for a busy machine, short enough to wait for.
const WITHIN: &str = "reply_within_ms=1500";

/// A primary, and a standby behind a link.
struct Pair {
    primary: Postgres,
    standby: Postgres,
    link: Link,
}

impl Pair {
    async fn start(kind: Standby) -> Self {
        let primary = Postgres::start_in_memory(&[]).unwrap();
        migrate(&primary.url()).await.unwrap();
        let link = Link::to(primary.port()).unwrap();
        let standby = primary.standby_over(&link, kind).unwrap();
        Self { primary, standby, link }
    }

    /// An engine that remembers nothing by itself.
    async fn engine(&self) -> Semel {
        let store = PostgresStore::connect(&format!("{}?{WITHIN}", self.primary.url())).await.unwrap();
        Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap()
    }

    /// Waits until so many commits wait for the standby.
    async fn until_waiting(&self, count: usize) {
        let text = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        until("commits to wait for the standby", || self.primary.ask(text).unwrap().parse() == Ok(count))
            .await;
    }

    fn cancel_waits(&self) {
        self.primary
            .ask("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            .unwrap();
    }

    /// The standby takes the place of the primary, and says what it knows of a key.
    async fn claim_after_failover(mut self, key: &Key) -> Decision {
        self.primary.kill().unwrap();
        self.standby.promote().unwrap();
        let semel = Semel::new(PostgresStore::connect(&self.standby.url()).await.unwrap());
        semel.claim(Claim::new(key)).await.unwrap()
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("waited 10 s for {what}");
}

fn complete(permit: Permit) -> tokio::task::JoinHandle<semel::Result<()>> {
    tokio::spawn(async move { permit.complete(Outcome::success("ch_1")).await })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_whose_wait_for_the_standby_was_cancelled_is_unknown_and_is_not_shown() {
    let pair = Pair::start(Standby::Synchronous).await;
    let (semel, other, key) = (pair.engine().await, pair.engine().await, key("charge"));
    let permit = granted(&semel, Claim::new(&key)).await;
    pair.link.freeze();
    let completing = complete(permit);
    pair.until_waiting(1).await;
    pair.cancel_waits();
    let error = completing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let error = other.claim(Claim::new(&key)).await.expect_err("the standby does not have the outcome");
    assert!(error.to_string().contains("synchronous standby"), "{error}");
    let decision = pair.claim_after_failover(&key).await;
    assert!(!matches!(decision, Decision::Replay(_)), "the standby never had it: {decision:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_during_whose_wait_the_server_was_shut_down_is_unknown() {
    let mut pair = Pair::start(Standby::Synchronous).await;
    let (semel, key) = (pair.engine().await, key("charge"));
    let permit = granted(&semel, Claim::new(&key)).await;
    pair.link.freeze();
    let completing = complete(permit);
    pair.until_waiting(1).await;
    // A fast shutdown ends sessions, and waits for its standby until that is cut off.
    let stopping = tokio::task::spawn_blocking(move || {
        pair.link.cut();
        pair.primary.stop().unwrap();
        pair
    });
    let error = completing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let decision = stopping.await.unwrap().claim_after_failover(&key).await;
    assert!(!matches!(decision, Decision::Replay(_)), "the standby never had it: {decision:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_that_a_restarted_primary_found_in_its_log_is_shown_once_the_standby_has_it() {
    let mut pair = Pair::start(Standby::Synchronous).await;
    let (semel, key) = (pair.engine().await, key("charge"));
    let permit = granted(&semel, Claim::new(&key)).await;
    pair.link.freeze();
    let error = complete(permit).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    pair.primary.kill().unwrap();
    pair.primary.resume().unwrap();
    let done = "SELECT count(*) FROM semel_records WHERE state = 'done'";
    assert_eq!(pair.primary.ask(done).unwrap(), "1", "it is in the log of the primary");
    let other = pair.engine().await;
    for _ in 0..2 {
        let error = other.claim(Claim::new(&key)).await.expect_err("the standby does not have it");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(other.get(&key).await.is_err());
    }
    let mut client = crate::server::client(&pair.primary.url()).await;
    let transaction = client.transaction().await.unwrap();
    let recorded = other.record_once_in(&transaction, Claim::new(&key), Outcome::success("ch_2")).await;
    assert!(recorded.is_err(), "the standby does not have it: {recorded:?}");
    transaction.rollback().await.unwrap();
    pair.link.mend();
    let mut decision = Err(String::new());
    for _ in 0..200 {
        decision = other.claim(Claim::new(&key)).await.map_err(|error| error.to_string());
        if decision.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(matches!(decision, Ok(Decision::Replay(_))), "the standby is back: {decision:?}");
    let decision = pair.claim_after_failover(&key).await;
    assert!(matches!(decision, Decision::Replay(_)), "what was shown is there: {decision:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_does_not_answer_uses_up_no_connections_of_the_primary() {
    let pair = Pair::start(Standby::Synchronous).await;
    let semel = pair.engine().await;
    pair.link.freeze();
    let mut kinds = Vec::new();
    for number in 0..6 {
        let key = Key::new("charge", &format!("stuck-{number}")).unwrap();
        kinds.push(semel.claim(Claim::new(&key)).await.unwrap_err().kind());
    }
    let waiting =
        pair.primary.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").unwrap();
    assert!(waiting.parse::<usize>().unwrap() <= 3, "{waiting} sessions wait for the standby: {kinds:?}");
    assert!(kinds.contains(&ErrorKind::Unavailable), "{kinds:?}");
    pair.link.mend();
    let key = key("charge");
    until_served(&semel, &key).await;
}

async fn until_served(semel: &Semel, key: &Key) {
    for _ in 0..200 {
        if semel.claim(Claim::new(key)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the store did not come back");
}

/// The record, asked for until the store is reachable: a failure to connect stands for a moment.
async fn once_reachable(semel: &Semel, key: &Key) -> Record {
    for _ in 0..200 {
        match semel.get(key).await {
            Ok(record) => return record.unwrap(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the store did not come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fences_grow_over_the_promotion_of_a_standby_that_lacks_the_last_writes() {
    let pair = Pair::start(Standby::Asynchronous).await;
    let semel = pair.engine().await;
    let key = key("charge");
    pair.link.freeze();
    let mut last = 0;
    for attempt in 1..40 {
        let permit = granted(&semel, Claim::new(&key)).await;
        assert!(permit.fence() > last, "attempt {attempt}");
        last = permit.fence();
        permit.release("again").await.unwrap();
    }
    match pair.claim_after_failover(&key).await {
        Decision::Run(permit) => assert!(permit.fence() > last, "{} after {last}", permit.fence()),
        other => panic!("the standby lacks every attempt: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_is_given_twice_while_two_primaries_take_writes() {
    let mut pair = Pair::start(Standby::Asynchronous).await;
    let old = pair.engine().await;
    pair.link.freeze();
    pair.standby.promote().unwrap();
    let new = Semel::new(PostgresStore::connect(&pair.standby.url()).await.unwrap());
    let mut fences = std::collections::BTreeSet::new();
    for _ in 0..40 {
        for semel in [&old, &new] {
            let fence = granted(semel, Claim::new(&key("charge"))).await.fence();
            assert!(fences.insert(fence), "{fence} was given twice");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_that_comes_back_is_not_asked() {
    let mut pair = Pair::start(Standby::Asynchronous).await;
    let (old, new) = (pair.primary.port(), pair.standby.port());
    let url = format!("postgres://semel@127.0.0.1:{old},127.0.0.1:{new}/semel?{WITHIN}");
    let store = PostgresStore::connect(&url).await.unwrap();
    let semel = Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap();
    pair.primary.kill().unwrap();
    pair.standby.promote().unwrap();
    let key = key("charge");
    until_served(&semel, &key).await;
    let record = semel.get(&key).await.unwrap().unwrap();
    assert_eq!(record.attempt, 1);
    pair.primary.resume().unwrap();
    // Every connection is made anew, and the former primary is the first of the URL.
    pair.standby.stop().unwrap();
    let error = semel.get(&key).await.unwrap_err();
    assert!(error.to_string().contains("timeline"), "it says which server it refuses, and why: {error}");
    pair.standby.resume().unwrap();
    let record = once_reachable(&semel, &key).await;
    assert_eq!(record.attempt, 1);
    // A process that starts now sees both at once.
    let fresh = Semel::new(PostgresStore::connect(&url).await.unwrap());
    assert!(fresh.get(&key).await.unwrap().is_some(), "the newer timeline is asked, whatever the order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_server_is_found_while_the_former_primary_still_answers() {
    let mut pair = Pair::start(Standby::Asynchronous).await;
    let (old, new) = (pair.primary.port(), pair.standby.port());
    let url = format!("postgres://semel@127.0.0.1:{old},127.0.0.1:{new}/semel");
    let store = PostgresStore::connect(&url).await.unwrap();
    let semel = Semel::new(store.clone());
    drop(granted(&semel, Claim::new(&key("charge"))).await);
    pair.standby.promote().unwrap();
    store.check().await.unwrap();
    let key = key("charge");
    drop(granted(&semel, Claim::new(&key)).await);
    let there = Semel::new(PostgresStore::connect(&pair.standby.url()).await.unwrap());
    assert!(there.get(&key).await.unwrap().is_some(), "the check found the newer timeline");
}

#[tokio::test]
async fn a_url_that_demands_a_synchronous_standby_refuses_a_server_without_one() {
    let pair = Pair::start(Standby::Asynchronous).await;
    let url = format!("{}?durability=synchronous-standby", pair.primary.url());
    let error = PostgresStore::connect(&url).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("synchronous_standby_names is empty"), "{error}");
    let store = PostgresStore::connect(&pair.primary.url()).await.unwrap();
    assert!(store.survives().contains("not a failover"), "{}", store.survives());
    let synchronous = pair.primary.standby(Standby::Synchronous).unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    assert!(store.survives().ends_with("a failover to its synchronous standby"), "{}", store.survives());
    drop(synchronous);
}
