//! Processes of 0.1 and of this release on one database: the statement of 0.1 over rows of schema 2, and what is read then.

use std::time::Duration;

use semel::record::{HoldReason, Record, State, StateKind};
use semel::{Claim, Decision, Key, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use tokio_postgres::Client;

use crate::server::{client, database_of_0_1, granted, key};

/// What the statement of 0.1 is given for one row, in its order, and how each is read from the row that is there.
const GIVEN: [(&str, &str); 31] = [
    ("id", "bytea"),
    ("expected", "bigint"),
    ("keep", "interval"),
    ("scope", "text"),
    ("operation", "text"),
    ("name", "text"),
    ("state", "text"),
    ("attempt", "integer"),
    ("pardoned", "bigint"),
    ("lapse", "text"),
    ("retention", "interval"),
    ("fingerprint", "bytea"),
    ("first_seen_at", "timestamptz"),
    ("first_event", "text"),
    ("mismatches", "bigint"),
    ("mismatched", "bytea"),
    ("duplicates", "bigint"),
    ("last_seen_at", "timestamptz"),
    ("permit_id", "uuid"),
    ("fence", "bigint"),
    ("owner", "text"),
    ("since", "timestamptz"),
    ("leased_at", "timestamptz"),
    ("lease", "interval"),
    ("reason", "text"),
    ("steps", "bytea"),
    ("outcome_kind", "text"),
    ("outcome", "bytea"),
    ("primary_reference", "text"),
    ("secondary_reference", "text"),
    ("details", "text"),
];

/// What 0.1 leaves null in a row that is done, beside what only other states have.
const DONE: [(&str, &str); 5] =
    [("state", "'done'"), ("owner", "NULL"), ("leased_at", "NULL"), ("lease", "NULL"), ("since", "NULL")];
const RELEASED: [(&str, &str); 8] = [
    ("state", "'released'"),
    ("permit_id", "NULL"),
    ("fence", "NULL"),
    ("owner", "NULL"),
    ("since", "NULL"),
    ("leased_at", "NULL"),
    ("lease", "NULL"),
    ("reason", "'given up by 0.1'"),
];
const TAKEN_OVER: [(&str, &str); 12] = [
    ("state", "'running'"),
    ("attempt", "2"),
    ("permit_id", "'00000000-0000-0000-0000-00000000beef'"),
    ("fence", "NULL"),
    ("owner", "'old-process'"),
    ("since", "NULL"),
    ("leased_at", "NULL"),
    ("lease", "'1 minute'"),
    ("reason", "NULL"),
    ("outcome_kind", "NULL"),
    ("outcome", "NULL"),
    ("primary_reference", "NULL"),
];

/// A session of 0.1 that was open before the migration, with its statement prepared, and an engine of this release.
struct Mixture {
    old: Client,
    new: Semel,
}

impl Mixture {
    async fn new() -> Self {
        let url = database_of_0_1().await;
        let old = client(&url).await;
        let statement = include_str!("../fixtures/swap-batch-0.1.sql");
        old.batch_execute(&format!("PREPARE swap_batch AS {statement}")).await.unwrap();
        migrate(&url).await.unwrap();
        let store = PostgresStore::connect(&url).await.unwrap();
        let new = Semel::builder(store).replays_kept(0, 0).no_sweep().owner("till-7").build().unwrap();
        Self { old, new }
    }

    /// Writes a row as 0.1 does: every column of its own, as it found it under this key or as given here.
    async fn write_as_0_1(&self, found_under: &Key, changes: &[(&str, &str)]) {
        let mut given = Vec::new();
        for (column, kind) in GIVEN {
            let found = match column {
                "expected" => "version",
                "keep" => "NULL",
                "scope" => "array_to_string(scope, chr(31))",
                other => other,
            };
            let text = format!("SELECT quote_nullable(({found})::text) FROM semel_records WHERE name = $1");
            let found: String = self.old.query_one(&text, &[&found_under.name()]).await.unwrap().get(0);
            let change = changes.iter().find(|(changed, _)| *changed == column);
            let value = change.map_or(found.as_str(), |(_, value)| *value);
            given.push(format!("ARRAY[{value}::{kind}]"));
        }
        let last = "SELECT max(version) FROM semel_records";
        let before: i64 = self.old.query_one(last, &[]).await.unwrap().get(0);
        self.old.batch_execute(&format!("EXECUTE swap_batch({})", given.join(", "))).await.unwrap();
        let after: i64 = self.old.query_one(last, &[]).await.unwrap().get(0);
        assert!(after > before, "0.1 wrote nothing");
    }

    async fn read(&self, key: &Key) -> Record {
        self.new.get(key).await.unwrap().unwrap()
    }

    /// A run that this release was granted.
    async fn run(&self, key: &Key) -> semel::Permit {
        granted(&self.new, Claim::new(key).label("POST /charges").lease(Duration::from_mins(1))).await
    }
}

fn references(record: &Record) -> Vec<(&str, &str)> {
    record.outcome().unwrap().references().iter().map(|one| (&*one.kind, &*one.id)).collect()
}

#[tokio::test]
async fn a_write_of_0_1_to_a_done_record_does_not_change_its_outcome() {
    let mixture = Mixture::new().await;
    let key = key("charge");
    let permit = mixture.run(&key).await;
    let outcome =
        Outcome::success("paid").reference("charge", "ch_1").reference("primary", "p").reference("mail", "m");
    permit.complete(outcome.clone()).await.unwrap();
    let before = mixture.read(&key).await;
    // 0.1 finds the reference that it knows, counts a duplicate, and writes all that it knows of the record.
    let known = "SELECT primary_reference FROM semel_records WHERE name = $1";
    assert_eq!(mixture.old.query_one(known, &[&key.name()]).await.unwrap().get::<_, &str>(0), "p");
    mixture.write_as_0_1(&key, &[("duplicates", "1"), ("owner", "NULL")]).await;
    let after = mixture.read(&key).await;
    assert_eq!((after.duplicates.count, after.outcome()), (1, Some(&outcome)));
    assert_eq!(
        (after.label.as_deref(), after.state.grant().granted_at),
        (Some("POST /charges"), before.state.grant().granted_at)
    );
    assert!(matches!(mixture.new.claim(Claim::new(&key)).await.unwrap(), Decision::Replay(_)));
}

#[tokio::test]
async fn a_run_of_this_release_that_0_1_completes_has_the_references_that_0_1_gave() {
    let mixture = Mixture::new().await;
    let key = key("charge");
    let permit = mixture.run(&key).await;
    let outcome =
        [("outcome_kind", "'success'"), ("outcome", "'paid'"), ("secondary_reference", "'order-7'")];
    mixture.write_as_0_1(&key, &[&DONE[..], &outcome].concat()).await;
    let record = mixture.read(&key).await;
    assert_eq!(references(&record), [("secondary", "order-7")]);
    assert_eq!(
        (record.state.grant().permit_id, record.label.as_deref()),
        (permit.id(), Some("POST /charges"))
    );
}

#[tokio::test]
async fn a_record_that_0_1_takes_over_keeps_nothing_of_the_run_before() {
    let mixture = Mixture::new().await;
    for settle in ["done", "released"] {
        let key = key("charge");
        let permit = mixture.run(&key).await;
        if settle == "done" {
            permit.complete(Outcome::success("paid").reference("charge", "ch_1")).await.unwrap();
        } else {
            permit.release("again").await.unwrap();
        }
        mixture.write_as_0_1(&key, &TAKEN_OVER).await;
        let record = mixture.read(&key).await;
        assert_eq!(
            (record.state.kind(), record.attempt, record.label.as_deref()),
            (StateKind::Running, 2, None)
        );
        let grant = record.state.grant();
        assert_eq!(
            (&*grant.owner, grant.fence, grant.granted_at),
            ("old-process", record.version, record.changed_at)
        );
        assert_eq!(record.past_attempts, []);
        // 0.1 completes its run: the references of the outcome before are not those of this one.
        let outcome = [("outcome_kind", "'success'"), ("outcome", "'paid again'")];
        mixture.write_as_0_1(&key, &[&DONE[..], &outcome].concat()).await;
        let record = mixture.read(&key).await;
        assert_eq!(
            (references(&record), &record.outcome().unwrap().bytes()[..]),
            (vec![], &b"paid again"[..])
        );
    }
}

#[tokio::test]
async fn a_run_that_0_1_gives_up_is_read_without_its_grant_and_claimed_again() {
    let mixture = Mixture::new().await;
    let key = key("charge");
    mixture.run(&key).await;
    mixture.write_as_0_1(&key, &RELEASED).await;
    let record = mixture.read(&key).await;
    let State::Released(released) = &record.state else { panic!("{record:?}") };
    assert_eq!(
        (&*released.reason, released.grant.permit_id.get(), &*released.grant.owner),
        ("given up by 0.1", 0, "")
    );
    assert_eq!(record.label, None);
    let second = mixture.run(&key).await;
    assert_eq!(second.attempt(), 2);
    second.hold("look at it").await.unwrap();
    let record = mixture.read(&key).await;
    let State::Held(held) = &record.state else { panic!("{record:?}") };
    assert_eq!(
        (&held.reason, held.grant.permit_id),
        (&HoldReason::Unknown("look at it".into()), second.id())
    );
    assert_eq!(record.past_attempts.len(), 1);
}

#[tokio::test]
async fn a_record_that_0_1_makes_after_the_migration_is_read_and_completed() {
    let mixture = Mixture::new().await;
    let (key, other) = (key("charge"), key("charge"));
    mixture.run(&other).await;
    // As an insert: another id and no expected version.
    let (id, name) = (format!("'\\x{}'", key.id()), format!("'{}'", key.name()));
    let inserted = [("id", id.as_str()), ("expected", "NULL"), ("name", name.as_str()), ("fence", "NULL")];
    mixture.write_as_0_1(&other, &inserted).await;
    let record = mixture.read(&key).await;
    assert_eq!((record.state.kind(), record.state.grant().fence), (StateKind::Running, record.version));
    let permit_id = record.state.grant().permit_id;
    let Decision::Run(permit) = mixture.new.resume(&key, permit_id).await.unwrap() else { panic!("it runs") };
    permit.complete(Outcome::success("paid").reference("charge", "ch_1")).await.unwrap();
    assert_eq!(references(&mixture.read(&key).await), [("charge", "ch_1")]);
}
