//! A sweep beside everything else: what it reads is bounded, however many records end in its second.

use std::sync::Arc;
use std::time::Duration;

use semel::record::Keep;
use semel::store::{Store, Swap, Swaps};
use semel::{Key, Outcome};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};

use crate::disk::{Calls, FailingDisk, SimulatedDisk};
use crate::sync::ready;

const RECORDS: usize = 3_000;
const KEEP: Duration = Duration::from_secs(10);
/// Far fewer than there are records, and enough that a few that end now are gone at once.
const READS_MAX: u64 = 256;

fn swap(number: usize) -> Swap {
    let key = Key::new("sweep", &format!("order-{number}")).unwrap();
    let write = sample::done(&sample::ask(&key), &Outcome::success("done")).unwrap();
    Swap { expected: None, next: write.next, keep: Keep::For(KEEP) }
}

#[test]
fn a_sweep_in_the_second_in_which_thousands_end_reads_few_of_them_and_is_not_asked_for_more_within_it() {
    let disk = FailingDisk::new(Arc::new(SimulatedDisk::new()));
    let clock = ManualClock::at(1_000_000_000_500);
    let store = FileStore::on(Arc::new(disk.clone())).clock(clock.clone()).inline().open().unwrap();
    for first in (0..RECORDS).step_by(500) {
        ready(store.swap((first..first + 500).map(swap).collect::<Swaps>())).unwrap();
    }
    clock.advance(KEEP);
    let before = disk.made(Calls::Reads);
    let swept = ready(store.sweep(usize::MAX)).unwrap().value;
    assert!(disk.made(Calls::Reads) - before <= READS_MAX, "{} reads", disk.made(Calls::Reads) - before);
    assert!(swept.removed > 0 && !swept.more_left, "{swept:?}");
    clock.advance(Duration::from_secs(1));
    let before = disk.made(Calls::Reads);
    let rest = ready(store.sweep(usize::MAX)).unwrap().value;
    assert_eq!((swept.removed + rest.removed, rest.more_left), (RECORDS, false));
    assert_eq!(disk.made(Calls::Reads), before, "what is over for sure is not read");
}
