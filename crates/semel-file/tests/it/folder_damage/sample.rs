//! Stores worth damaging, closed and killed, with every outcome that was acknowledged.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use semel::Outcome;
use semel::record::{Keep, Record};
use semel::store::{Store, Swap, SwapReply};
use semel_file::FileStore;
use semel_testkit::sample;
use tempfile::TempDir;

use crate::sync::ready;

/// Small, so that a store of a few kilobytes has several.
const SEGMENT_BYTES: u64 = 16 << 10;
const OUTCOME_BYTES: usize = 700;

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Closed,
    Killed,
}

/// The folder of a store, some copies of it from earlier on, and what was acknowledged.
pub(crate) struct Sample {
    pub(crate) folder: TempDir,
    /// The folder when half of the records were written.
    pub(crate) yesterday: TempDir,
    /// The folder before anything was written.
    pub(crate) empty: TempDir,
    pub(crate) acknowledged: Vec<Arc<Record>>,
    pub(crate) acknowledged_yesterday: usize,
}

impl Sample {
    pub(crate) fn new(records: usize, ending: Ending) -> Self {
        let (live, folder, yesterday, empty) = (scratch(), scratch(), scratch(), scratch());
        let store = open(live.path()).unwrap();
        copy(live.path(), empty.path());
        let mut acknowledged = done(&store, records / 2);
        let acknowledged_yesterday = acknowledged.len();
        copy(live.path(), yesterday.path());
        acknowledged.extend(done(&store, records - acknowledged_yesterday));
        // A kill leaves what the system has taken, which is what another process reads.
        match ending {
            Ending::Closed => store.close().unwrap(),
            Ending::Killed => {}
        }
        copy(live.path(), folder.path());
        Self { folder, yesterday, empty, acknowledged, acknowledged_yesterday }
    }
}

/// A store on the threads of its callers: nothing happens behind the back of a test.
pub(crate) fn open(folder: &Path) -> semel::Result<FileStore> {
    FileStore::builder(folder).segment_bytes(SEGMENT_BYTES).inline().open()
}

/// A folder in memory, where there is one: nothing is tested here that a power cut could lose.
pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Writes so many outcomes; every third of them as a run that ends.
pub(crate) fn done(store: &FileStore, records: usize) -> Vec<Arc<Record>> {
    (0..records).map(|number| one_done(store, number)).collect()
}

fn one_done(store: &FileStore, number: usize) -> Arc<Record> {
    let ask = sample::ask(&sample::key("folder").unwrap());
    let outcome = Outcome::success(vec![u8::try_from(number % 251).unwrap(); OUTCOME_BYTES]);
    let write = sample::done(&ask, &outcome).unwrap();
    let keep = Keep::For(sample::LONG);
    let mut expected = None;
    if number.is_multiple_of(3) {
        let running = sample::running(&ask).unwrap();
        expected = Some(swapped(store, Swap { expected: None, next: running.next, keep }).version);
    }
    swapped(store, Swap { expected, next: write.next, keep })
}

fn swapped(store: &FileStore, swap: Swap) -> Arc<Record> {
    match ready(store.swap([swap].into())).unwrap().value.remove(0) {
        SwapReply::Swapped(record) => record,
        other => panic!("{other:?}"),
    }
}

/// Copies every file, one after the other, over what is there.
pub(crate) fn copy(from: &Path, to: &Path) {
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// The names of all files, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
