//! A row that cannot be read fails alone, and stays as it is.

use semel::record::StateKind;
use semel::store::{Scan, Store, SwapReply};
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Permit, Semel};
use semel_postgres::{CompleteIn, PostgresStore};
use tokio_postgres::Client;

use crate::server::{alone, client, granted, key};

/// What a hand may do to a row, and what the error says of it. A new version each time, as the schema asks for.
const DAMAGE: [(&str, &str); 5] = [
    ("attempt = -1", "a number is negative"),
    ("steps = '\\x00000000000000ff61'", "its steps are cut short"),
    ("state = 'waiting'", "its state does not exist"),
    ("past_attempts = '[1]'", "its past attempts are not a list of attempts"),
    ("lease = '1 month'", "a span is in months"),
];

async fn damage(client: &Client, key: &Key, how: &str) {
    let unguarded = "ALTER TABLE semel_records DROP CONSTRAINT IF EXISTS semel_records_state";
    client.batch_execute(unguarded).await.unwrap();
    let text = format!("UPDATE semel_records SET version = nextval('semel_version'), {how} WHERE name = $1");
    assert_eq!(client.execute(&text, &[&key.name()]).await.unwrap(), 1);
}

/// The whole row, as text.
async fn row(client: &Client, key: &Key) -> String {
    let text = "SELECT r::text FROM semel_records r WHERE name = $1";
    client.query_one(text, &[&key.name()]).await.unwrap().get(0)
}

/// An engine that sends all that waits in few batches, with some runs, one of which has a damaged row.
async fn damaged_run(how: &str) -> (Semel, PostgresStore, Client, Permit, Vec<Permit>) {
    let (store, url) = alone().await;
    let semel = Semel::builder(store.clone()).replays_kept(0, 0).no_sweep().build().unwrap();
    let damaged = granted(&semel, Claim::new(&key("charge"))).await;
    let mut others = Vec::new();
    for _ in 0..50 {
        others.push(granted(&semel, Claim::new(&key("charge"))).await);
    }
    let client = client(&url).await;
    damage(&client, damaged.key(), how).await;
    (semel, store, client, damaged, others)
}

#[tokio::test]
async fn fifty_completes_beside_a_damaged_record_all_take() {
    for (how, why) in DAMAGE {
        let (semel, _, client, damaged, others) = damaged_run(how).await;
        let before = row(&client, damaged.key()).await;
        let outcome = Outcome::success("paid").reference("charge", "ch_1");
        let complete = |permit: Permit| {
            let outcome = outcome.clone();
            tokio::spawn(async move { permit.complete(outcome).await })
        };
        let refused = complete(damaged.clone());
        let completes: Vec<_> = others.iter().cloned().map(complete).collect();
        for taken in completes {
            taken.await.unwrap().unwrap();
        }
        let error = refused.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(why), "{how}: {error}");
        assert!(error.to_string().contains(&damaged.key().id().to_string()), "{error}");
        for permit in &others {
            let record = semel.get(permit.key()).await.unwrap().unwrap();
            assert_eq!((record.state.kind(), record.outcome()), (StateKind::Done, Some(&outcome)));
        }
        assert_eq!(row(&client, damaged.key()).await, before);
    }
}

#[tokio::test]
async fn one_batch_of_swaps_answers_all_but_the_damaged_one() {
    let (_, store, client, damaged, others) = damaged_run("attempt = -1").await;
    let before = row(&client, damaged.key()).await;
    let swap = |permit: &Permit| match permit.complete_loop(Outcome::success("paid")).unwrap().next().unwrap()
    {
        semel::swap_loop::Next::Swap(swap) => swap,
        other => panic!("the run is known: {other:?}"),
    };
    // Twice the damaged one: the second rides in a round of its own.
    let batch = std::iter::once(&damaged).chain(&others).chain([&damaged]).map(swap).collect();
    let replies = store.swap(batch).await.unwrap().value;
    assert_eq!(replies.len(), 52);
    assert_eq!(replies.iter().filter(|reply| matches!(reply, SwapReply::Swapped(_))).count(), 50);
    for reply in [&replies[0], &replies[51]] {
        let SwapReply::Damaged(why) = reply else { panic!("{reply:?}") };
        assert!(why.to_string().contains("a number is negative"), "{why}");
    }
    assert_eq!(row(&client, damaged.key()).await, before);
}

#[tokio::test]
async fn claims_beside_a_damaged_record_are_answered_and_it_is_not_overwritten() {
    let (semel, _, client, damaged, _) = damaged_run("state = 'waiting'").await;
    let before = row(&client, damaged.key()).await;
    let claim = |key: Key| {
        let semel = semel.clone();
        tokio::spawn(async move { semel.claim(Claim::new(&key)).await })
    };
    let refused: Vec<_> = (0..50).map(|_| claim(damaged.key().clone())).collect();
    let claims: Vec<_> = (0..50).map(|_| claim(key("other"))).collect();
    for taken in claims {
        assert!(matches!(taken.await.unwrap().unwrap(), Decision::Run(_)));
    }
    for refused in refused {
        assert_eq!(refused.await.unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!(row(&client, damaged.key()).await, before);
}

#[tokio::test]
async fn loads_and_pages_show_all_but_the_damaged_record_and_name_that_one() {
    let (semel, store, _, damaged, others) = damaged_run("steps = '\\x00'").await;
    let ids = std::iter::once(&damaged).chain(&others).map(|permit| permit.key().id()).collect();
    let mut loaded = store.load(ids).await.unwrap().value.into_iter();
    assert_eq!(loaded.next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(loaded.filter(|found| matches!(found, Ok(Some(_)))).count(), 50);
    assert_eq!(semel.get(damaged.key()).await.unwrap_err().kind(), ErrorKind::Corrupt);
    // Pages of one row, so that the walk must also get past the damaged one.
    let (mut after, mut readable, mut unreadable) = (None, 0, Vec::new());
    loop {
        let page = store.scan(Scan { after, limit: 1, ..Scan::default() }).await.unwrap().value;
        readable += page.records.len();
        unreadable.extend(page.damaged);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((readable, unreadable.len()), (50, 1));
    let (id, why) = &unreadable[0];
    assert_eq!((*id, why.kind()), (damaged.key().id(), ErrorKind::Corrupt));
}

#[tokio::test]
async fn a_damaged_record_is_refused_inside_a_transaction_too() {
    let (_, _, mut client, damaged, others) = damaged_run("attempt = -1").await;
    let transaction = client.transaction().await.unwrap();
    others[0].complete_in(&transaction, Outcome::success("paid")).await.unwrap();
    let error = damaged.complete_in(&transaction, Outcome::success("paid")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
