//! The verdict itself: a store that serves one wrong byte, or hides one record, must not pass.

use std::sync::Arc;

use semel::RecordId;
use semel::record::Record;
use semel::store::{Loaded, Reply, Store, SwapReplies, Swaps};
use semel_file::FileStore;

use super::log::{Ending, Log};
use super::verdict::{Seen, judge};
use crate::disk::{SimulatedDisk, Syncs};
use crate::sync::ready;

/// A store that changes what it hands out.
struct Wrong {
    store: FileStore,
    change: fn(&mut Option<Arc<Record>>),
}

impl Store for Wrong {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.store.swap(batch)
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let answer = ready(self.store.load(ids)).map(|mut answer| {
            answer.value.iter_mut().flatten().take(1).for_each(self.change);
            answer
        });
        Reply::ready(answer)
    }

    semel_testkit::delegate!(store: sweep, scan);
}

fn judged(change: fn(&mut Option<Arc<Record>>)) -> Result<Seen, String> {
    let log = Log::of(32 << 10, Ending::Clean);
    let disk = SimulatedDisk::holding(log.image.clone(), Syncs::Honest);
    judge(&Wrong { store: log.open(&disk).unwrap(), change }, &log)
}

#[test]
fn a_log_without_damage_is_whole() {
    assert_eq!(judged(|_| {}), Ok(Seen::Whole));
}

#[test]
fn a_store_that_serves_one_wrong_number_is_found_out() {
    let wrong = judged(|found| found.iter_mut().for_each(|record| Arc::make_mut(record).attempt += 1));
    assert!(wrong.is_err_and(|what| what.contains("not what was written")));
}

#[test]
fn a_store_that_hides_one_record_is_found_out() {
    assert!(judged(|found| *found = None).is_err_and(|what| what.contains("missing")));
}
