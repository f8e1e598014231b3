//! Two actors in one record: another session stops a statement of ours with a lock, changes what it has seen, and lets it go
//! on.

use semel::record::{Keep, Record};
use semel::store::{Scan, Store, Swap, SwapReply};
use semel::{Claim, Error, ErrorKind, Key, Lapse, Semel};
use semel_postgres::PostgresStore;
use semel_testkit::sample;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::server::{alone, client, granted, key};

fn renewal_of(record: &Record) -> Swap {
    let semel::record::State::Running(running) = &record.state else { panic!("{record:?}") };
    let permit_id = running.grant.permit_id;
    let write = semel::machine::settle::renew(Some(record), permit_id, sample::LONG, record.changed_at).write;
    let write = sample::written(write).unwrap();
    Swap { expected: Some(record.version), next: write.next, keep: write.keep }
}

fn claim_of(key: &Key) -> Swap {
    let write = sample::running(&sample::ask(key)).unwrap();
    Swap { expected: None, next: write.next, keep: write.keep }
}

async fn stored(store: &PostgresStore, key: &Key) -> Arc<Record> {
    match store.swap([claim_of(key)].into()).await.unwrap().value.remove(0) {
        SwapReply::Swapped(record) => record,
        other => panic!("{other:?}"),
    }
}

/// A session that can stop others.
struct Other {
    client: Client,
    watching: Client,
}

impl Other {
    async fn connect(url: &str) -> Self {
        Self { client: client(url).await, watching: client(url).await }
    }

    /// Writes a record as another caller would, and keeps the row's lock until it is let go.
    async fn write_and_hold(&self, record: &Record) {
        let text = format!(
            "BEGIN; UPDATE semel_records SET version = nextval('semel_version'), changed_at = clock_timestamp(), \
             leased_at = clock_timestamp() WHERE id = '\\x{}'",
            record.key.id()
        );
        self.client.batch_execute(&text).await.unwrap();
    }

    async fn let_go(&self) {
        self.client.batch_execute("COMMIT").await.unwrap();
    }

    /// Waits until a statement of a store waits for a lock.
    async fn until_blocked(&self) {
        let text = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                    WHERE NOT l.granted AND a.application_name = 'semel' AND a.datname = current_database()";
        for _ in 0..500 {
            if self.watching.query_one(text, &[]).await.unwrap().get::<_, i64>(0) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing of ours waited for a lock");
    }
}

fn swap_later(store: &PostgresStore, swaps: Vec<Swap>) -> JoinHandle<semel::Result<Vec<SwapReply>>> {
    let reply = store.swap(swaps.into_iter().collect());
    tokio::spawn(async move { Ok(reply.await?.value.into_iter().collect()) })
}

/// A store in a database of its own, so that no other test's locks are met.
async fn database() -> (PostgresStore, String) {
    let url = crate::server::empty_database().await;
    semel_postgres::migrate(&url).await.unwrap();
    (PostgresStore::connect(&url).await.unwrap(), url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_another_caller_wrote_between_look_and_write_is_stale_alone_and_in_a_batch() {
    let (store, url) = database().await;
    let other = Other::connect(&url).await;
    for count in [1, 3] {
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(stored(&store, &key("charge")).await);
        }
        other.write_and_hold(&records[0]).await;
        let swapping = swap_later(&store, records.iter().map(|record| renewal_of(record)).collect());
        other.until_blocked().await;
        other.let_go().await;
        let replies = swapping.await.unwrap().unwrap();
        let SwapReply::Stale(Some(found)) = &replies[0] else { panic!("both writers won: {replies:?}") };
        assert!(found.version > records[0].version);
        assert!(replies[1..].iter().all(|reply| matches!(reply, SwapReply::Swapped(_))), "{replies:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_another_caller_inserted_between_look_and_write_is_stale_alone_and_in_a_batch() {
    let (store, url) = database().await;
    let other = Other::connect(&url).await;
    for count in [1, 3] {
        let keys: Vec<_> = (0..count).map(|_| key("charge")).collect();
        let template = stored(&store, &key("charge")).await;
        // The other caller's row, in a transaction that is not over.
        let text = format!(
            "BEGIN; CREATE TEMP TABLE other ON COMMIT DROP AS SELECT * FROM semel_records WHERE id = '\\x{}'; \
             UPDATE other SET id = '\\x{}', name = '{}', version = nextval('semel_version'); \
             INSERT INTO semel_records SELECT * FROM other",
            template.key.id(),
            keys[0].id(),
            keys[0].name()
        );
        other.client.batch_execute(&text).await.unwrap();
        let swapping = swap_later(&store, keys.iter().map(claim_of).collect());
        other.until_blocked().await;
        other.let_go().await;
        let replies = swapping.await.unwrap().unwrap();
        assert!(matches!(replies[0], SwapReply::Stale(Some(_))), "both writers won: {replies:?}");
        assert!(replies[1..].iter().all(|reply| matches!(reply, SwapReply::Swapped(_))), "{replies:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_moment_of_an_answer_is_not_before_the_record_that_it_shows() {
    let (store, url) = database().await;
    let record = stored(&store, &key("charge")).await;
    let id = record.key.id();
    // A write that lands after the server got our statement and before its snapshot, which no lock can stop in between:
    // written with a moment that our statements have not reached yet.
    let write = "UPDATE semel_records SET changed_at = clock_timestamp() + interval '1 minute', \
                 version = nextval('semel_version')";
    client(&url).await.batch_execute(write).await.unwrap();
    let swapped = store.swap([renewal_of(&record)].into()).await.unwrap();
    let [SwapReply::Stale(Some(found))] = &swapped.value[..] else { panic!("{swapped:?}") };
    assert_eq!(swapped.now, found.changed_at);
    let mut batch = vec![renewal_of(&record)];
    batch.push(claim_of(&key("charge")));
    let swapped = store.swap(batch.into_iter().collect()).await.unwrap();
    assert!(swapped.now >= found.changed_at, "in a batch");
    assert_eq!(store.load(vec![id]).await.unwrap().now, found.changed_at);
    assert_eq!(store.scan(Scan { limit: 9, ..Scan::default() }).await.unwrap().now, found.changed_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_failed_after_a_part_of_it_was_written_is_unknown() {
    let owner = crate::server::empty_database().await;
    semel_postgres::migrate(&owner).await.unwrap();
    let role = format!("app_{:016x}", rand::random::<u64>());
    let all = "semel_records, semel_waiters, semel_schema, semel_timelines";
    let text = format!(
        "CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON {all} TO {role}; \
         GRANT USAGE, UPDATE ON SEQUENCE semel_version TO {role}"
    );
    let other = Other::connect(&owner).await;
    other.client.batch_execute(&text).await.unwrap();
    let url = owner.replace("postgres://semel@", &format!("postgres://{role}@"));
    let store = PostgresStore::connect(&url).await.unwrap();
    let record = stored(&store, &key("charge")).await;
    other.write_and_hold(&record).await;
    let new = key("charge");
    let swapping = swap_later(&store, vec![claim_of(&new), renewal_of(&record)]);
    other.until_blocked().await;
    // The first round writes the new record and loses the race for the other one; the second round is refused.
    other.watching.batch_execute(&format!("REVOKE UPDATE ON semel_records FROM {role}")).await.unwrap();
    other.let_go().await;
    let outcome: Result<Vec<SwapReply>, Error> = swapping.await.unwrap();
    let error = outcome.expect_err("the second round cannot write");
    assert_eq!(error.kind(), ErrorKind::Unknown, "a part of it was written: {error}");
    let written = format!("SELECT count(*) FROM semel_records WHERE id = '\\x{}'", new.id());
    assert_eq!(other.watching.query_one(&written, &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_the_server_ended_leaves_a_write_unknown_and_not_unwritten() {
    let (store, url) = database().await;
    let other = Other::connect(&url).await;
    let record = stored(&store, &key("charge")).await;
    other.write_and_hold(&record).await;
    let swapping = swap_later(&store, vec![renewal_of(&record)]);
    other.until_blocked().await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'semel' \
               AND wait_event_type = 'Lock' AND datname = current_database()";
    other.watching.batch_execute(end).await.unwrap();
    let error = swapping.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    other.let_go().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_leaves_a_record_that_was_renewed_while_it_was_under_way() {
    let (store, url) = database().await;
    let other = Other::connect(&url).await;
    let (first, second) = (stored(&store, &key("charge")).await, stored(&store, &key("charge")).await);
    // Both are past their keep; removing the first stops at a lock that the other session holds.
    let text = format!(
        "UPDATE semel_records SET keep_until = clock_timestamp() - CASE id WHEN '\\x{}' THEN interval '2 s' \
         ELSE interval '1 s' END; \
         CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN OLD; END'; \
         CREATE TRIGGER stop BEFORE DELETE ON semel_records FOR EACH ROW EXECUTE FUNCTION stop(); \
         SELECT pg_advisory_lock(7)",
        first.key.id()
    );
    other.client.batch_execute(&text).await.unwrap();
    let sweeping = tokio::spawn(store.sweep(100));
    other.until_blocked().await;
    let renewed = store.swap([renewal_of(&second)].into()).await.unwrap().value.remove(0);
    let SwapReply::Swapped(renewed) = renewed else {
        // The sweep has locked it already: then it is the renewal that must find it gone.
        panic!("the sweep had it before it was stopped: {renewed:?}");
    };
    other.client.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    let swept = sweeping.await.unwrap().unwrap().value;
    assert_eq!(swept.removed, 1, "only the one that was not renewed");
    let found = store.load(vec![second.key.id()]).await.unwrap().record().unwrap().unwrap();
    assert_eq!(found.version, renewed.version);
    assert!(matches!(renewal_of(&renewed).keep, Keep::For(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lapsed_run_that_is_completed_late_beside_a_claim_has_one_winner() {
    let (store, url) = alone().await;
    let (one, two) = (Semel::new(store), Semel::new(PostgresStore::connect(&url).await.unwrap()));
    let key = key("charge");
    let claim = || Claim::new(&key).lease(Duration::from_millis(1)).lapse(Lapse::Rerun);
    let late = granted(&one, claim()).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let (completed, second) =
        tokio::join!(late.complete(semel::Outcome::success("ch_1")), two.claim(claim()));
    match (completed, second.unwrap()) {
        (Ok(()), semel::Decision::Replay(_)) | (Err(_), semel::Decision::Run(_)) => {}
        other => panic!("both won: {other:?}"),
    }
}
