//! The effect and the record commit together or not at all.

use std::time::Duration;

use semel::record::StateKind;
use semel::{Claim, Decision, ErrorKind, Fingerprint, Key, Outcome, RecordedOnce, Semel};
use semel_postgres::{CompleteIn, RecordOnceIn};
use tokio_postgres::Client;

use crate::server::{alone, client, granted, key};

/// An engine, the application's own connection to the same database, and a table for its effects.
async fn bank() -> (Semel, Client, String) {
    let (store, url) = alone().await;
    let client = client(&url).await;
    client.batch_execute("CREATE TABLE charges (name text)").await.unwrap();
    (Semel::new(store), client, url)
}

async fn charges(client: &Client, key: &Key) -> i64 {
    let count = "SELECT count(*) FROM charges WHERE name = $1";
    client.query_one(count, &[&key.name()]).await.unwrap().get(0)
}

async fn state(semel: &Semel, key: &Key) -> Option<StateKind> {
    semel.get(key).await.unwrap().map(|record| record.state.kind())
}

const CHARGE: &str = "INSERT INTO charges VALUES ($1)";

#[tokio::test]
async fn the_effect_and_the_record_commit_together() {
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
    permit.complete_in(&transaction, Outcome::success(*b"ch_1")).await.unwrap();
    assert_eq!(
        state(&semel, &key).await,
        Some(StateKind::Running),
        "nothing is to be seen before the commit"
    );
    transaction.commit().await.unwrap();
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (1, Some(StateKind::Done)));
    let Decision::Replay(replay) = semel.claim(Claim::new(&key)).await.unwrap() else {
        panic!("a retry replays");
    };
    assert_eq!(&replay.outcome().bytes()[..], b"ch_1");
}

#[tokio::test]
async fn a_rollback_takes_both_back_and_the_run_goes_on() {
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
    permit.complete_in(&transaction, Outcome::success(*b"ch_1")).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (0, Some(StateKind::Running)));
    permit.complete(Outcome::success(*b"ch_2")).await.unwrap();
    assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
}

#[tokio::test]
async fn without_the_transaction_a_rollback_leaves_a_record_of_what_never_happened() {
    // The control: what `complete_in` is for.
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
    permit.complete(Outcome::success(*b"ch_1")).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (0, Some(StateKind::Done)));
}

/// A permit that another run took over.
async fn lost_permit(semel: &Semel, key: &Key) -> semel::Permit {
    let claim = || Claim::new(key).lease(Duration::from_millis(1));
    let lost = granted(semel, claim()).await;
    loop {
        match semel.claim(claim()).await.unwrap() {
            Decision::Run(_) => return lost,
            Decision::Busy(_) => tokio::task::yield_now().await,
            other => panic!("it lapses within milliseconds: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_lost_permit_fails_the_transaction_also_if_nobody_listens() {
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let lost = lost_permit(&semel, &key).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
    let error = lost.complete_in(&transaction, Outcome::success(*b"ch_1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(lost.is_lost());
    // The server takes the commit of a failed transaction for a rollback, whether it says so or not.
    drop(transaction.commit().await);
    assert_eq!(charges(&client, &key).await, 0);
}

#[tokio::test]
async fn a_renewal_in_between_does_no_harm() {
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let elsewhere = granted(&semel, Claim::new(&key).permit_id(permit.id())).await;
    elsewhere.renew().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    permit.complete_in(&transaction, Outcome::success(*b"ch_1")).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
}

#[tokio::test]
async fn an_outcome_is_recorded_once_with_its_effect() {
    let (semel, mut client, _) = bank().await;
    let key = key("event");
    let claim = || Claim::new(&key).fingerprint(Fingerprint::from_bytes([1; 32]));
    let rounds = [("recorded", "rolled back"), ("recorded", "committed"), ("replayed", "rolled back")];
    for (expected, end) in rounds {
        let transaction = client.transaction().await.unwrap();
        transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
        let told = semel.record_once_in(&transaction, claim(), Outcome::success(*b"seen")).await.unwrap();
        let told = match told {
            RecordedOnce::Recorded(_) => "recorded",
            RecordedOnce::Replay(_) => "replayed",
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected);
        if end == "committed" {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
    }
    assert_eq!(charges(&client, &key).await, 1);
    let other = Claim::new(&key).fingerprint(Fingerprint::from_bytes([2; 32]));
    let transaction = client.transaction().await.unwrap();
    let told = semel.record_once_in(&transaction, other, Outcome::success(*b"seen")).await.unwrap();
    assert!(matches!(told, RecordedOnce::Mismatch(_)), "{told:?}");
}

/// Polls until a session waits for a transaction; a test that waits for ever is ended by its runner.
async fn until_one_waits_for_a_transaction(client: &Client, table: &str) {
    let waiting = "SELECT count(*) FROM pg_locks waits WHERE locktype = 'transactionid' AND NOT granted AND pid IN \
                   (SELECT pid FROM pg_locks WHERE relation = $1::text::regclass AND granted)";
    while client.query_one(waiting, &[&table]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn two_transactions_that_record_one_key_at_once_record_it_once() {
    let (semel, mut client, url) = bank().await;
    for (end, expected) in [("committed", "replayed"), ("rolled back", "recorded")] {
        let key = key("event");
        let first = client.transaction().await.unwrap();
        let answer =
            semel.record_once_in(&first, Claim::new(&key), Outcome::success(*b"first")).await.unwrap();
        assert!(matches!(answer, RecordedOnce::Recorded(_)), "{answer:?}");
        let second = tokio::spawn({
            let (semel, key, mut client) = (semel.clone(), key.clone(), crate::server::client(&url).await);
            async move {
                let second = client.transaction().await.unwrap();
                let answer = semel
                    .record_once_in(&second, Claim::new(&key), Outcome::success(*b"second"))
                    .await
                    .unwrap();
                second.commit().await.unwrap();
                answer
            }
        });
        // The second waits for the first, and finds nothing in its own snapshot afterwards: a lost race.
        until_one_waits_for_a_transaction(&crate::server::client(&url).await, "semel_records").await;
        if end == "committed" {
            first.commit().await.unwrap();
        } else {
            first.rollback().await.unwrap();
        }
        let answer = match second.await.unwrap() {
            RecordedOnce::Recorded(_) => "recorded",
            RecordedOnce::Replay(_) => "replayed",
            other => panic!("{other:?}"),
        };
        assert_eq!(answer, expected, "the first one {end}");
    }
}

#[tokio::test]
async fn a_complete_that_waits_for_another_write_of_its_record_takes_after_it() {
    let (semel, mut client, url) = bank().await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let write = client.transaction().await.unwrap();
    let renewed =
        "UPDATE semel_records SET version = nextval('semel_version'), leased_at = clock_timestamp()";
    write.batch_execute(renewed).await.unwrap();
    let complete = tokio::spawn({
        let mut client = crate::server::client(&url).await;
        async move {
            let transaction = client.transaction().await.unwrap();
            permit.complete_in(&transaction, Outcome::success(*b"ch_1")).await.unwrap();
            transaction.commit().await.unwrap();
        }
    });
    until_one_waits_for_a_transaction(&crate::server::client(&url).await, "semel_records").await;
    write.commit().await.unwrap();
    complete.await.unwrap();
    assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
}

#[cfg(feature = "sqlx")]
mod of_sqlx {
    use sqlx::{Connection, PgConnection};

    use super::*;

    #[tokio::test]
    async fn an_sqlx_transaction_commits_both_or_none() {
        let (semel, client, url) = bank().await;
        let mut connection = PgConnection::connect(&url).await.unwrap();
        for (commits, expected) in
            [(false, (0, Some(StateKind::Running))), (true, (1, Some(StateKind::Done)))]
        {
            let key = key("charge");
            let permit = granted(&semel, Claim::new(&key)).await;
            let mut transaction = connection.begin().await.unwrap();
            sqlx::query(CHARGE).bind(key.name()).execute(&mut *transaction).await.unwrap();
            permit.complete_in(&mut transaction, Outcome::success(*b"ch_1")).await.unwrap();
            if commits {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
            assert_eq!((charges(&client, &key).await, state(&semel, &key).await), expected);
        }
    }

    #[tokio::test]
    async fn a_lost_permit_fails_an_sqlx_transaction() {
        let (semel, client, url) = bank().await;
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let key = key("charge");
        let lost = lost_permit(&semel, &key).await;
        let mut transaction = connection.begin().await.unwrap();
        sqlx::query(CHARGE).bind(key.name()).execute(&mut *transaction).await.unwrap();
        let error = lost.complete_in(&mut transaction, Outcome::success(*b"ch_1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        drop(transaction.commit().await);
        assert_eq!(charges(&client, &key).await, 0);
    }

    #[tokio::test]
    async fn an_outcome_is_recorded_once_in_an_sqlx_transaction() {
        let (semel, _client, url) = bank().await;
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let key = key("event");
        let mut transaction = connection.begin().await.unwrap();
        let told = semel
            .record_once_in(&mut transaction, Claim::new(&key), Outcome::success(*b"seen"))
            .await
            .unwrap();
        assert!(matches!(told, RecordedOnce::Recorded(_)), "{told:?}");
        transaction.commit().await.unwrap();
        assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
    }
}
