//! Data that 0.1 wrote: refused before the migration, and served after it.

use std::sync::Arc;

use semel::machine::offset;
use semel::record::{Record, State, StateKind};
use semel::store::{Scan, Store};
use semel::{Claim, Decision, ErrorKind, Fingerprint, Key, Lapse, Outcome, RecordId, Semel};
use semel_postgres::{PostgresStore, migrate};
use serde_json::{Value, json};

use crate::server::{client, database_of_0_1, granted};

fn key(name: &str) -> Key {
    Key::scoped(["acme"], "fixture", name).unwrap()
}

/// The eleven records, as 0.1 itself showed them.
fn records_of_0_1() -> Vec<Value> {
    serde_json::from_str(include_str!("../fixtures/records-0.1.json")).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The record in the words of 0.1.
fn shown(record: &Record) -> Value {
    let hex = |print: &Fingerprint| RecordId::from_bytes(*print.as_bytes()).to_string();
    let (permit_id, owner) = (record.state.grant().permit_id.get(), &*record.state.grant().owner);
    let reference = |outcome: &Outcome, kind: &str| {
        outcome
            .references()
            .iter()
            .find(|reference| &*reference.kind == kind)
            .map(|reference| reference.id.clone())
    };
    let mut shown = json!({
        "scope": record.key.scope().collect::<Vec<_>>(),
        "operation": record.key.operation(),
        "name": record.key.name(),
        "id": record.key.id().to_string(),
        "state": record.state.kind().as_str(),
        "attempt": record.attempt,
        "pardoned": record.attempts_forgiven,
        "lapse": match record.lapse { Lapse::Rerun => "rerun", Lapse::Hold => "hold" },
        "retention_seconds": record.retention.as_secs(),
        "fingerprint": record.fingerprint.as_ref().map(hex),
        "first_event": record.first_event.as_deref(),
        "owner": Some(owner).filter(|owner| !owner.is_empty()),
        "permit_id": Some(permit_id).filter(|id| *id > 0).map(|id| u64::try_from(id).unwrap()),
        "lease_ms": null,
        "reason": null,
        "outcome": null,
        "steps": record.steps().iter()
            .map(|step| json!({"name": step.name, "value": text(&step.value)})).collect::<Vec<_>>(),
        "duplicates": record.duplicates.count,
        "mismatches": record.mismatches.count,
        "mismatched_fingerprints": record.mismatches.fingerprints.iter().map(hex).collect::<Vec<_>>(),
    });
    match &record.state {
        State::Running(running) => {
            shown["lease_ms"] = json!(u64::try_from(running.lease.as_millis()).unwrap());
        }
        State::Done(done) => {
            shown["outcome"] = json!({
                "kind": done.outcome.kind().as_str(),
                "bytes": text(done.outcome.bytes()),
                "primary_reference": reference(&done.outcome, "primary"),
                "secondary_reference": reference(&done.outcome, "secondary"),
                "details": done.outcome.details_json(),
            });
        }
        State::Released(released) => shown["reason"] = json!(released.reason),
        State::Held(held) => shown["reason"] = json!(held.reason.as_str()),
    }
    if let Some(offset) = offset::read(record) {
        shown["offset"] = json!({
            "position": offset.position.map(|position| position.to_string()),
            "last_event": offset.last_event,
            "epoch": offset.epoch,
            "lag": offset.lag,
        });
    }
    shown
}

#[tokio::test]
async fn data_of_0_1_is_refused_until_it_is_migrated_and_then_read_whole() {
    let url = database_of_0_1().await;
    let error = PostgresStore::connect(&url).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("has version 1") && error.to_string().contains("semel migrate"),
        "{error}"
    );
    let migrated = migrate(&url).await.unwrap();
    assert_eq!((migrated.from, migrated.to), (1, 3));
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).await.unwrap());
    let expected = records_of_0_1();
    assert_eq!(expected.len(), 11);
    let page = store.scan(Scan { limit: 100, ..Scan::default() }).await.unwrap().value;
    assert_eq!((page.records.len(), page.damaged.len()), (11, 0));
    for record in page.records {
        let shown = shown(&record);
        assert!(expected.contains(&shown), "{shown:#}");
    }
}

#[tokio::test]
async fn data_of_0_1_is_served_after_the_migration() {
    let url = database_of_0_1().await;
    migrate(&url).await.unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    let semel = Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap();
    let of = |part: &str| Fingerprint::of_parts([part]);
    let Decision::Replay(replay) = semel.claim(Claim::new(&key("done")).fingerprint(of("d"))).await.unwrap()
    else {
        panic!("it is done");
    };
    assert_eq!(&replay.outcome().bytes()[..], b"paid");
    let references: Vec<_> = replay.outcome().references().iter().map(|one| (&*one.kind, &*one.id)).collect();
    assert_eq!(references, [("primary", "ch_1"), ("secondary", "order-7")]);
    let mismatch = semel.claim(Claim::new(&key("done")).fingerprint(of("other"))).await.unwrap();
    assert!(matches!(mismatch, Decision::Mismatch(_)), "{mismatch:?}");
    for name in ["held-lapsed", "held-attempts", "held-by-hand"] {
        let held = semel.claim(Claim::new(&key(name))).await.unwrap();
        assert!(matches!(held, Decision::Held(_)), "{name}: {held:?}");
    }
    let offset = Key::scoped(["orders"], "offset", "topic/0").unwrap();
    let offset = offset::read(&semel.get(&offset).await.unwrap().unwrap()).unwrap();
    assert_eq!(offset.position.map(|position| position.to_string()).as_deref(), Some("41"));

    let third = granted(&semel, Claim::new(&key("released"))).await;
    assert_eq!((third.attempt(), third.steps().len()), (3, 1));
    third.complete(Outcome::success("paid").reference("charge", "ch_3")).await.unwrap();
    let record = semel.get(&key("released")).await.unwrap().unwrap();
    assert_eq!((record.state.kind(), record.attempt), (StateKind::Done, 3));
    assert_eq!(record.outcome().unwrap().references().len(), 1);
    let ended: Vec<_> = record.history().map(|ended| ended.number).collect();
    assert_eq!(ended, [2, 3]);
    assert!(third.fence() > 27, "versions go on where 0.1 stopped");
}

/// The file that holds the table's rows: another one once the server has rewritten them.
async fn file_of_the_table(client: &tokio_postgres::Client) -> u32 {
    let file = "SELECT pg_relation_filenode('semel_records')";
    client.query_one(file, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_migration_rewrites_no_row_and_many_processes_may_start_it_at_once() {
    let url = database_of_0_1().await;
    let client = client(&url).await;
    let before = file_of_the_table(&client).await;
    let migrations: Vec<_> = (0..8)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { migrate(&url).await })
        })
        .collect();
    let mut found = Vec::new();
    for migration in migrations {
        found.push(migration.await.unwrap().unwrap().from);
    }
    found.sort_unstable();
    assert_eq!(found, [1, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(file_of_the_table(&client).await, before);
    let indexes = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname), bool_and(indisvalid) FROM pg_index \
                   JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'semel_records'::regclass";
    let row = client.query_one(indexes, &[]).await.unwrap();
    let expected = "semel_records_id semel_records_keep_until semel_records_kept_for_ever";
    assert_eq!((row.get::<_, &str>(0), row.get::<_, bool>(1)), (expected, true));
    assert_eq!(migrate(&url).await.unwrap().from, 3, "once more is harmless");
}

#[tokio::test]
async fn an_index_whose_building_failed_is_built_anew() {
    let url = database_of_0_1().await;
    migrate(&url).await.unwrap();
    let client = client(&url).await;
    let spoil =
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'semel_records_kept_for_ever'::regclass";
    client.batch_execute(spoil).await.unwrap();
    migrate(&url).await.unwrap();
    let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'semel_records_kept_for_ever'::regclass";
    assert!(client.query_one(valid, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test]
async fn a_migration_that_waits_for_a_transaction_lets_others_write_meanwhile() {
    let url = database_of_0_1().await;
    let (mut long, other) = (client(&url).await, client(&url).await);
    let touch = "UPDATE semel_records SET duplicates = duplicates + 1 WHERE name = $1";
    let transaction = long.transaction().await.unwrap();
    transaction.execute(touch, &[&"done"]).await.unwrap();
    let migration = tokio::spawn({
        let url = url.clone();
        async move { migrate(&url).await }
    });
    let waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'semel_records'::regclass AND NOT granted";
    while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    // Queued behind the migration, which waits for a transaction that does not end: it has to step back.
    assert_eq!(other.execute(touch, &[&"done-other"]).await.unwrap(), 1);
    assert!(!migration.is_finished());
    transaction.commit().await.unwrap();
    assert_eq!(migration.await.unwrap().unwrap().from, 1);
}
