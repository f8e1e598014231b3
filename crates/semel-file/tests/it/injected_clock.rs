//! A store whose clock a test moves: engines must not replay from memory, which counts on this machine's time.

use std::time::Duration;

use semel::store::{Caching, Store};
use semel::{Claim, Decision, Key, Outcome, Semel};
use semel_file::FileStore;
use semel_testkit::ManualClock;

#[tokio::test]
async fn a_done_record_is_gone_as_soon_as_the_injected_clock_is_past_its_retention() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(1_000_000_000_000);
    let store = FileStore::builder(&folder).clock(clock.clone()).open().unwrap();
    let semel = Semel::builder(store).no_sweep().build().unwrap();
    let key = Key::new("clock", "injected").unwrap();
    let claim = || Claim::new(&key).retention(Duration::from_hours(1));
    let Decision::Run(permit) = semel.claim(claim()).await.unwrap() else { panic!("it is the first") };
    permit.complete(Outcome::success("done")).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(semel.claim(claim()).await.unwrap(), Decision::Replay(_)));
    }
    clock.advance(Duration::from_hours(1));
    assert!(semel.get(&key).await.unwrap().is_none());
    let decision = semel.claim(claim()).await.unwrap();
    assert!(matches!(decision, Decision::Run(_)), "{decision:?}");
}

#[tokio::test]
async fn engines_may_keep_answers_only_on_the_clock_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let machine = FileStore::open(folder.path().join("machine")).unwrap();
    let builder = FileStore::builder(folder.path().join("injected"));
    let injected = builder.clock(ManualClock::at(1_000_000_000_000)).open().unwrap();
    for (store, caching) in [(machine, Caching::Allowed), (injected, Caching::Refused)] {
        assert_eq!(store.load(Vec::new()).await.unwrap().caching, caching);
        assert_eq!(store.swap(Vec::new().into()).await.unwrap().caching, caching);
    }
}

#[tokio::test]
async fn a_lease_lapses_on_time_after_a_restart_with_a_clock_that_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("clock", "set back").unwrap();
    let claim = || Claim::new(&key).lease(Duration::from_secs(3));
    let open = |clock: &ManualClock| {
        let store = FileStore::builder(&folder).clock(clock.clone()).inline().open().unwrap();
        Semel::builder(store).no_sweep().build().unwrap()
    };
    let semel = open(&ManualClock::at(10_000_000_000));
    assert!(matches!(semel.claim(claim()).await.unwrap(), Decision::Run(_)));
    drop(semel);
    let clock = ManualClock::at(10_000_000_000 - 3_600_000_000);
    let semel = open(&clock);
    clock.advance(Duration::from_millis(2_999));
    assert!(matches!(semel.claim(claim()).await.unwrap(), Decision::Busy(_)));
    clock.advance(Duration::from_millis(1));
    let decision = semel.claim(claim()).await.unwrap();
    assert!(matches!(decision, Decision::Run(_)), "{decision:?}");
}
