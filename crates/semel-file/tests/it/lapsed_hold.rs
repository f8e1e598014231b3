//! A run whose lease lapsed under `hold` is held for everybody who looks, before any claim has written that.

use std::time::Duration;

use semel::record::StateKind;
use semel::store::{Filter, Scan};
use semel::{Claim, Decision, Key, Lapse, Semel};
use semel_file::FileStore;
use semel_testkit::ManualClock;
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(10);

fn open(folder: &TempDir, clock: &ManualClock) -> Semel {
    let store = FileStore::builder(folder).clock(clock.clone()).inline().open().unwrap();
    Semel::builder(store).no_sweep().build().unwrap()
}

async fn claim(semel: &Semel, name: &str, lapse: Lapse) {
    let claim = Claim::new(&Key::new("lapse", name).unwrap()).lease(LEASE).lapse(lapse);
    assert!(matches!(semel.claim(claim).await.unwrap(), Decision::Run(_)));
}

async fn names(semel: &Semel, states: &[StateKind]) -> Vec<String> {
    let filter = Filter { states: states.to_vec(), ..Filter::default() };
    let page = semel.scan(Scan { filter, after: None, limit: 100 }).await.unwrap();
    let mut names: Vec<_> = page.records.iter().map(|record| record.key.name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_listed_as_held_and_not_as_running() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(1_000_000_000_000));
    let semel = open(&folder, &clock);
    claim(&semel, "hold", Lapse::Hold).await;
    claim(&semel, "rerun", Lapse::Rerun).await;
    clock.advance(LEASE / 2);
    claim(&semel, "later", Lapse::Hold).await;
    let (running, held) = ([StateKind::Running], [StateKind::Held]);
    assert_eq!(names(&semel, &running).await, ["hold", "later", "rerun"]);
    assert!(names(&semel, &held).await.is_empty());
    clock.advance(LEASE / 2);
    assert_eq!(names(&semel, &running).await, ["later", "rerun"]);
    assert_eq!(names(&semel, &held).await, ["hold"]);
    assert_eq!(names(&semel, &[StateKind::Running, StateKind::Held]).await, ["hold", "later", "rerun"]);
    assert_eq!(names(&semel, &[StateKind::Held, StateKind::Done]).await, ["hold"]);
    // The index is built anew from the log, which says only that it runs.
    drop(semel);
    let semel = open(&folder, &clock);
    assert_eq!(names(&semel, &held).await, ["hold"]);
    assert_eq!(names(&semel, &running).await, ["later", "rerun"]);
}
