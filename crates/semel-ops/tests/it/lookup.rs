//! What a walk through a store shows and counts.

use std::sync::Arc;
use std::time::Duration;

use semel::record::StateKind;
use semel::store::{Filter, MemoryStore, Store};
use semel::{Claim, Decision, Key, Lapse, Outcome, RecordedOnce, Resolution, Semel};
use semel_ops::lookup::Counted;
use semel_ops::lookup::walk::{self, Walk};
use semel_testkit::ManualClock;
use serde_json::json;

const LEASE: Duration = Duration::from_mins(1);

fn key(name: &str) -> Key {
    Key::new("charge", name).unwrap()
}

/// A store with a run under each lapse policy whose lease has lapsed, and no claim since.
async fn lapsed() -> Arc<MemoryStore> {
    let clock = ManualClock::at(1_000_000);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    let semel = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
    for (name, lapse) in [("hold", Lapse::Hold), ("rerun", Lapse::Rerun)] {
        let claim = Claim::new(&key(name)).lapse(lapse).lease(LEASE);
        assert!(matches!(semel.claim(claim).await.unwrap(), Decision::Run(_)));
    }
    clock.advance(LEASE);
    store
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_held_for_every_reader() {
    let store = lapsed().await;
    let (record, now) = walk::live(&*store, key("hold").id()).await.unwrap().unwrap();
    assert_eq!(record.state.kind(), StateKind::Held);
    assert_eq!(*record.state.grant().owner, *format!("pid {}", std::process::id()));
    for (state, names) in [(StateKind::Held, ["hold"]), (StateKind::Running, ["rerun"])] {
        let filter = Filter { states: vec![state], ..Filter::default() };
        let page = Walk::new(&*store, filter, None).next().await.unwrap().unwrap();
        let found: Vec<_> = page.records.iter().map(|found| (found.state.kind(), found.key.name())).collect();
        assert_eq!(found, names.map(|name| (state, name)));
        assert_eq!(page.now, now);
    }
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_counted_as_held_and_not_as_running() {
    let store = lapsed().await;
    let ids = [key("hold").id(), key("rerun").id()].to_vec();
    // As the store has them: both are running there.
    let answer = store.load(ids).await.unwrap();
    let mut counted = Counted::default();
    for record in answer.value {
        let record = record.unwrap().unwrap();
        assert_eq!(record.state.kind(), StateKind::Running);
        counted.add(&record, answer.now, 10);
    }
    assert_eq!((counted.held, counted.running, counted.lapsed, counted.records()), (1, 1, 1, 2));
    let names = |records: &[semel::record::Record]| -> Vec<String> {
        records.iter().map(|record| record.key.name().to_owned()).collect()
    };
    assert_eq!(
        (names(&counted.oldest_held), names(&counted.oldest_running)),
        (vec!["hold".into()], vec!["rerun".into()])
    );
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_resolved_without_a_claim_in_between() {
    let store = lapsed().await;
    let semel = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
    let (record, _) = walk::live(&*store, key("hold").id()).await.unwrap().unwrap();
    let done = Resolution::Done(Outcome::success("landed"));
    let answer = semel.resolve_shown(&record, done, Some(record.version.get())).await.unwrap();
    assert_eq!(answer, semel::OperatorAnswer::Resolved);
    let Decision::Replay(replay) = semel.claim(Claim::new(&key("hold"))).await.unwrap() else {
        panic!("it is done")
    };
    assert_eq!(&**replay.outcome().bytes(), b"landed");
}

#[tokio::test]
async fn a_page_is_bounded_by_all_that_is_in_its_records() {
    const RECORDS: usize = 320;
    const DETAILS_BYTES: usize = 128 << 10;
    const PAGE_BYTES: usize = 9 << 20;
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
    for number in 0..RECORDS {
        let outcome = Outcome::success("").details(&json!("d".repeat(DETAILS_BYTES)));
        let recorded = semel.record_once(Claim::new(&key(&number.to_string())), outcome).await.unwrap();
        assert!(matches!(recorded, RecordedOnce::Recorded(_)));
    }
    for limit in [usize::MAX, 200] {
        let mut walk = Walk::new(&*store, Filter::default(), None);
        let mut found = 0;
        while let Some(page) = walk.next_of(limit).await.unwrap() {
            let bytes: usize = page.records.iter().map(|record| record.heap_bytes()).sum();
            assert!(bytes < PAGE_BYTES, "a page of {} records has {bytes} bytes", page.records.len());
            found += page.records.len();
        }
        assert_eq!(found, RECORDS);
    }
}
