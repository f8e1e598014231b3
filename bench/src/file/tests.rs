//! Every contestant does the work that it is measured by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::TempFolder;
use super::who::Who;
use crate::contestants::trial::refuses_a_second_claim;
use crate::contestants::{Engine, StoreAlone, file};
use crate::databases::{Fjall, GroupCommit, Redb, Sqlite};
use crate::inputs::Response;
use crate::runtime::runtime;
use crate::window::Plan;

/// A folder of its own for every test; the process has one, and tests run beside each other.
fn folder(name: &str) -> TempFolder {
    let parent: PathBuf = std::env::temp_dir().join(format!("semel-bench-test-{name}"));
    TempFolder::under(Some(&parent)).unwrap()
}

#[test]
fn no_contestant_runs_a_key_twice_and_each_hands_back_the_outcome() {
    let folder = folder("claims");
    let fresh = |name: &str| folder.fresh(name).unwrap();
    let grouped = |database, calls_max| GroupCommit::new(database, calls_max).unwrap();
    let (runtime, bytes) = (runtime(2).unwrap(), Response::new().encoded().len());
    let sqlite = |folder: &Path| Sqlite::open(folder).unwrap();
    refuses_a_second_claim(
        ("store", bytes),
        &runtime,
        &StoreAlone::new(file::open(&fresh("store")).unwrap()),
    );
    refuses_a_second_claim(("engine", bytes), &runtime, &Engine::new(file::open(&fresh("engine")).unwrap()));
    refuses_a_second_claim(("sqlite", bytes), &runtime, &grouped(sqlite(&fresh("sqlite")), usize::MAX));
    refuses_a_second_claim(("per call", bytes), &runtime, &grouped(sqlite(&fresh("per-call")), 1));
    let fjall = Fjall::open(&fresh("fjall")).unwrap();
    refuses_a_second_claim(("fjall", bytes), &runtime, &GroupCommit::new(fjall, usize::MAX).unwrap());
    let redb = Redb::open(&fresh("redb")).unwrap();
    refuses_a_second_claim(("redb", bytes), &runtime, &GroupCommit::new(redb, usize::MAX).unwrap());
}

#[test]
fn every_contestant_is_loaded_works_and_knows_its_keys() {
    let folder = folder("loads");
    let runtime = runtime(2).unwrap();
    let bytes = Response::new().encoded().len();
    for who in Who::ALL {
        let entrant = who.load(&folder.fresh(&who.word()).unwrap(), 3_000, &runtime, |_| ()).unwrap();
        let plan = Plan { callers: 64, span: Duration::from_millis(60) };
        let window = entrant.window(&runtime, plan).unwrap();
        assert!(window.rate > 0.0, "{who:?}: {window:?}");
        assert!(window.claim_p50_us <= window.claim_p99_us, "{who:?}: {window:?}");
        // The first, the last that was loaded, and the first of the window.
        for number in [0, 2_999, 3_000] {
            assert_eq!(entrant.replay(&runtime, number).unwrap(), bytes, "{who:?}, key {number}");
        }
    }
}
