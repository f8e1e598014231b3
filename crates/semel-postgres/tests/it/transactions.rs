//! The effect and the record commit together or not at all.

use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use semel::machine::offset::{Move, Moved, Position};
use semel::record::StateKind;
use semel::{Claim, Decision, ErrorKind, Fingerprint, Key, Outcome, RecordedOnce, Semel};
use semel_postgres::{CompleteIn, MoveOffsetIn, RecordOnceIn, StatementCache};
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

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
    permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
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
    permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (0, Some(StateKind::Running)));
    permit.complete(Outcome::success("ch_2")).await.unwrap();
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
    permit.complete(Outcome::success("ch_1")).await.unwrap();
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
    let error = lost.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap_err();
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
    permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
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
        let answer = semel.record_once_in(&transaction, claim(), Outcome::success("seen")).await.unwrap();
        assert_eq!(as_str(&answer), expected);
        if end == "committed" {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
    }
    assert_eq!(charges(&client, &key).await, 1);
    let other = Claim::new(&key).fingerprint(Fingerprint::from_bytes([2; 32]));
    let transaction = client.transaction().await.unwrap();
    let told = semel.record_once_in(&transaction, other, Outcome::success("seen")).await.unwrap();
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
        let answer = semel.record_once_in(&first, Claim::new(&key), Outcome::success("first")).await.unwrap();
        assert!(matches!(answer, RecordedOnce::Recorded(_)), "{answer:?}");
        let second = tokio::spawn({
            let (semel, key, mut client) = (semel.clone(), key.clone(), crate::server::client(&url).await);
            async move {
                let second = client.transaction().await.unwrap();
                let answer = semel
                    .record_once_in(&second, Claim::new(&key), Outcome::success("second"))
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
        assert_eq!(as_str(&second.await.unwrap()), expected, "the first one {end}");
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
            permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
            transaction.commit().await.unwrap();
        }
    });
    until_one_waits_for_a_transaction(&crate::server::client(&url).await, "semel_records").await;
    write.commit().await.unwrap();
    complete.await.unwrap();
    assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
}

/// How many of semel's statements the connection keeps prepared, and how often they ran.
async fn prepared(client: &Client) -> (i64, i64) {
    let row = client.query_typed(PREPARED, &[]).await.unwrap().remove(0);
    (row.get(0), row.get(1))
}

const PREPARED: &str = "SELECT count(*), coalesce(sum(generic_plans + custom_plans), 0)::bigint \
     FROM pg_prepared_statements WHERE statement LIKE '%semel_records%'";

/// Charges and completes with statements that are prepared.
async fn charge_prepared(statements: &StatementCache, client: &mut Client, permit: &semel::Permit) {
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&permit.key().name()]).await.unwrap();
    permit.complete_in(statements.on(&transaction), Outcome::success("ch_1")).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn statements_are_prepared_once_for_each_connection() {
    let (semel, mut client, url) = bank().await;
    let mut other = crate::server::client(&url).await;
    let statements = StatementCache::new();
    for (first, second) in [((1, 1), (0, 0)), ((1, 2), (1, 1)), ((1, 3), (1, 2))] {
        if second.1 > 0 {
            let permit = granted(&semel, Claim::new(&key("charge"))).await;
            charge_prepared(&statements, &mut other, &permit).await;
        }
        let key = key("charge");
        let permit = granted(&semel, Claim::new(&key)).await;
        charge_prepared(&statements, &mut client, &permit).await;
        assert_eq!((prepared(&client).await, prepared(&other).await), (first, second));
        assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (1, Some(StateKind::Done)));
    }
}

#[tokio::test]
async fn a_connection_that_is_made_anew_has_its_statements_prepared_anew() {
    let (semel, _, url) = bank().await;
    let statements = StatementCache::new();
    for _ in 0..5 {
        let mut client = crate::server::client(&url).await;
        let permit = granted(&semel, Claim::new(&key("charge"))).await;
        charge_prepared(&statements, &mut client, &permit).await;
        assert_eq!(prepared(&client).await, (1, 1));
    }
}

#[tokio::test]
async fn without_a_statement_cache_nothing_is_prepared() {
    // The control, and what a pooler in transaction mode needs.
    let (semel, mut client, _) = bank().await;
    let permit = granted(&semel, Claim::new(&key("charge"))).await;
    let transaction = client.transaction().await.unwrap();
    permit.complete_in(&transaction, Outcome::success("ch_1")).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(prepared(&client).await, (0, 0));
}

#[tokio::test]
async fn statements_that_the_server_has_forgotten_fail_one_transaction_and_are_prepared_again() {
    let (semel, mut client, _) = bank().await;
    let statements = StatementCache::new();
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let before = granted(&semel, Claim::new(&crate::server::key("charge"))).await;
    charge_prepared(&statements, &mut client, &before).await;
    client.batch_execute("DEALLOCATE ALL").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute(&format!("INSERT INTO charges VALUES ('{}')", key.name())).await.unwrap();
    let failed = permit.complete_in(statements.on(&transaction), Outcome::success("ch_1")).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert!(failed.to_string().contains("does not know the prepared statement"), "{failed}");
    drop(transaction.commit().await);
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (0, Some(StateKind::Running)));
    charge_prepared(&statements, &mut client, &permit).await;
    assert_eq!((charges(&client, &key).await, state(&semel, &key).await), (1, Some(StateKind::Done)));
}

#[tokio::test]
async fn a_lost_permit_fails_a_transaction_with_prepared_statements() {
    let (semel, mut client, _) = bank().await;
    let key = key("charge");
    let lost = lost_permit(&semel, &key).await;
    let statements = StatementCache::new();
    let transaction = client.transaction().await.unwrap();
    transaction.execute(CHARGE, &[&key.name()]).await.unwrap();
    let error = lost.complete_in(statements.on(&transaction), Outcome::success("ch_1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    drop(transaction.commit().await);
    assert_eq!(charges(&client, &key).await, 0);
}

#[tokio::test]
async fn an_outcome_and_an_offset_are_written_with_prepared_statements() {
    let (semel, mut client, _) = bank().await;
    let (event, offset) = (key("event"), key("offset"));
    let statements = StatementCache::new();
    for (position, expected) in [(1, "recorded"), (2, "replayed"), (3, "replayed")] {
        let transaction = client.transaction().await.unwrap();
        let (claim, outcome) = (Claim::new(&event), Outcome::success("seen"));
        let answer = semel.record_once_in(statements.on(&transaction), claim, outcome).await.unwrap();
        assert_eq!(as_str(&answer), expected);
        let moved =
            semel.move_offset_in(statements.on(&transaction), &offset, commit(position)).await.unwrap();
        assert!(matches!(moved, Moved::Moved(_)), "{moved:?}");
        transaction.commit().await.unwrap();
    }
    let found = semel.get(&offset).await.unwrap().unwrap();
    assert_eq!(semel::machine::offset::read(&found).unwrap().position, Some(Position::new(3)));
    assert_eq!(prepared(&client).await.0, 3, "insert, update and load");
}

#[tokio::test]
async fn a_secured_connection_has_its_statements_prepared_too() {
    let (server, folder) = crate::tls::secured("localhost").await;
    let url = format!("{}?sslmode=disable", server.url());
    semel_postgres::migrate(&url).await.unwrap();
    let semel = Semel::new(semel_postgres::PostgresStore::connect(&url).await.unwrap());
    let mut roots = rustls::RootCertStore::empty();
    let trusted = folder.path().join("ca.pem");
    let certificate = <rustls::pki_types::CertificateDer<'_> as PemObject>::from_pem_file(trusted).unwrap();
    roots.add(certificate).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = MakeRustlsConnect::new(tls.with_root_certificates(roots).with_no_client_auth());
    let config = format!("postgres://semel@localhost:{}/semel?sslmode=require", server.port());
    let (mut client, connection) = tokio_postgres::connect(&config, tls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE charges (name text)").await.unwrap();
    let statements = StatementCache::new();
    for runs in 1..=2 {
        let permit = granted(&semel, Claim::new(&key("charge"))).await;
        charge_prepared(&statements, &mut client, &permit).await;
        assert_eq!(prepared(&client).await, (1, runs));
    }
}

fn as_str(answer: &RecordedOnce) -> &'static str {
    match answer {
        RecordedOnce::Recorded(_) => "recorded",
        RecordedOnce::Replay(_) => "replayed",
        other => panic!("{other:?}"),
    }
}

/// Everything up to here is read.
fn commit(position: u128) -> Move {
    Move::Commit { epoch: None, position: Position::new(position), last_event: None, lag: None }
}

/// The tests of one release of sqlx: releases share no types.
macro_rules! of_sqlx {
    ($sqlx:ident) => {
        use $sqlx::postgres::PgConnectOptions;
        use $sqlx::{ConnectOptions, Connection, PgConnection, Row};

        use super::*;

        async fn connection(url: &str) -> PgConnection {
            PgConnection::connect(url).await.unwrap()
        }

        /// What [`prepared`](super::prepared) says, of this connection.
        async fn prepared(connection: &mut PgConnection) -> (i64, i64) {
            let row = $sqlx::query(PREPARED).persistent(false).fetch_one(connection).await.unwrap();
            (row.get(0), row.get(1))
        }

        #[tokio::test]
        async fn an_sqlx_transaction_commits_both_or_none() {
            let (semel, client, url) = bank().await;
            let mut connection = connection(&url).await;
            for (commits, expected) in
                [(false, (0, Some(StateKind::Running))), (true, (1, Some(StateKind::Done)))]
            {
                let key = key("charge");
                let permit = granted(&semel, Claim::new(&key)).await;
                let mut transaction = connection.begin().await.unwrap();
                $sqlx::query(CHARGE).bind(key.name()).execute(&mut *transaction).await.unwrap();
                permit.complete_in(&mut transaction, Outcome::success("ch_1")).await.unwrap();
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
            let mut connection = connection(&url).await;
            let key = key("charge");
            let lost = lost_permit(&semel, &key).await;
            let mut transaction = connection.begin().await.unwrap();
            $sqlx::query(CHARGE).bind(key.name()).execute(&mut *transaction).await.unwrap();
            let error = lost.complete_in(&mut transaction, Outcome::success("ch_1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Lost);
            drop(transaction.commit().await);
            assert_eq!(charges(&client, &key).await, 0);
        }

        #[tokio::test]
        async fn an_outcome_is_recorded_once_in_an_sqlx_transaction() {
            let (semel, _client, url) = bank().await;
            let mut connection = connection(&url).await;
            let key = key("event");
            for expected in ["recorded", "replayed"] {
                let mut transaction = connection.begin().await.unwrap();
                let (claim, outcome) = (Claim::new(&key), Outcome::success("seen"));
                let answer = semel.record_once_in(&mut transaction, claim, outcome).await.unwrap();
                assert_eq!(as_str(&answer), expected);
                transaction.commit().await.unwrap();
            }
            assert_eq!(state(&semel, &key).await, Some(StateKind::Done));
        }

        #[tokio::test]
        async fn an_offset_moves_in_an_sqlx_transaction_and_a_fenced_reader_fails_it() {
            let (semel, client, url) = bank().await;
            let mut connection = connection(&url).await;
            let (key, effect) = (key("offset"), key("charge"));
            let mut transaction = connection.begin().await.unwrap();
            let moved = semel.move_offset_in(&mut transaction, &key, commit(7)).await.unwrap();
            assert!(matches!(moved, Moved::Moved(_)), "{moved:?}");
            transaction.commit().await.unwrap();
            semel.move_offset(&key, Move::Take).await.unwrap();
            let mut transaction = connection.begin().await.unwrap();
            $sqlx::query(CHARGE).bind(effect.name()).execute(&mut *transaction).await.unwrap();
            let moved = semel.move_offset_in(&mut transaction, &key, commit(8)).await.unwrap();
            assert!(matches!(moved, Moved::Fenced(_)), "{moved:?}");
            drop(transaction.commit().await);
            assert_eq!(charges(&client, &effect).await, 0);
        }

        #[tokio::test]
        async fn sqlx_prepares_the_statement_once_if_it_keeps_statements() {
            let (semel, client, url) = bank().await;
            let options: PgConnectOptions = url.parse().unwrap();
            for (capacity, expected) in [(100, [(1, 1), (1, 2), (1, 3)]), (0, [(0, 0); 3])] {
                let options = options.clone().statement_cache_capacity(capacity);
                let mut connection = options.connect().await.unwrap();
                for expected in expected {
                    let key = key("charge");
                    let permit = granted(&semel, Claim::new(&key)).await;
                    let mut transaction = connection.begin().await.unwrap();
                    $sqlx::query(CHARGE).bind(key.name()).execute(&mut *transaction).await.unwrap();
                    permit.complete_in(&mut transaction, Outcome::success("ch_1")).await.unwrap();
                    transaction.commit().await.unwrap();
                    assert_eq!(prepared(&mut connection).await, expected, "capacity {capacity}");
                    assert_eq!(charges(&client, &key).await, 1);
                }
            }
        }
    };
}

#[cfg(feature = "sqlx-0_8")]
mod of_sqlx_0_8 {
    of_sqlx!(sqlx_0_8);
}

#[cfg(feature = "sqlx-0_9")]
mod of_sqlx_0_9 {
    of_sqlx!(sqlx);
}
