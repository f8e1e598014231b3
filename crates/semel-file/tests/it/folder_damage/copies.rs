//! Whole folders: restored, restored over what is there, and copied while the store is at work.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::Outcome;
use semel::record::{Keep, Record};
use semel::store::{Store, Swap, SwapReply};
use semel_file::FileStore;
use semel_testkit::sample;

use super::sample::{Ending, Sample, copy, names, scratch};
use super::verdict::{Seen, judge};

const RECORDS: usize = 60;
/// How often the folder is copied under load.
const COPIES: usize = 8;

/// Any file may be named, also one that is missing.
fn judge_any_file(folder: &Path, acknowledged: &[Arc<Record>]) -> Result<Seen, String> {
    judge(folder, acknowledged, &[".log", ".hint", "semel."])
}

#[test]
fn a_folder_restored_from_yesterday_is_whole_as_of_yesterday() {
    let sample = Sample::new(RECORDS, Ending::Closed);
    let acknowledged = &sample.acknowledged[..sample.acknowledged_yesterday];
    assert_eq!(judge_any_file(sample.yesterday.path(), acknowledged), Ok(Seen::Whole));
}

#[test]
fn yesterday_restored_over_today_is_whole_as_of_yesterday_or_refused() {
    for records in [8, 20, RECORDS] {
        let sample = Sample::new(records, Ending::Closed);
        copy(sample.yesterday.path(), sample.folder.path());
        let acknowledged = &sample.acknowledged[..sample.acknowledged_yesterday];
        judge_any_file(sample.folder.path(), acknowledged).unwrap();
    }
}

#[test]
fn a_folder_moved_to_another_disk_and_back_is_whole() {
    for ending in [Ending::Closed, Ending::Killed] {
        let (sample, moved) = (Sample::new(RECORDS, ending), scratch());
        copy(sample.folder.path(), moved.path());
        assert_eq!(judge_any_file(moved.path(), &sample.acknowledged), Ok(Seen::Whole));
    }
}

/// Callers that write outcomes, few of which are kept, while old ones are swept and their segments removed.
struct Load {
    store: FileStore,
    is_over: AtomicBool,
    kept: Mutex<Vec<Arc<Record>>>,
    written: AtomicU64,
}

impl Load {
    async fn write(self: Arc<Self>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let is_kept = self.written.fetch_add(1, Ordering::Relaxed).is_multiple_of(8);
            let ask = sample::ask(&sample::key("load").unwrap());
            let write = sample::done(&ask, &Outcome::success(vec![7; 400])).unwrap();
            let keep = Keep::For(if is_kept { sample::LONG } else { Duration::from_millis(5) });
            let swap = Swap { expected: None, next: write.next, keep };
            match self.store.swap([swap].into()).await.unwrap().value.remove(0) {
                SwapReply::Swapped(record) if is_kept => self.kept.lock().unwrap().push(record),
                SwapReply::Swapped(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn sweep(self: Arc<Self>) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.store.sweep(1_000).await.unwrap();
        }
    }
}

/// Copies as `cp -r` does: the names that were there at first, one after the other.
fn copy_live(from: &Path, to: &Path, names: &[String]) {
    for name in names {
        match fs::copy(from.join(name), to.join(name)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_copied_under_load_has_what_was_acknowledged_before_or_is_refused() {
    let live = scratch();
    let store = FileStore::builder(live.path()).segment_bytes(128 << 10).open().unwrap();
    let load =
        Load { store, is_over: AtomicBool::new(false), kept: Mutex::default(), written: AtomicU64::new(0) };
    let load = Arc::new(load);
    let mut tasks: Vec<_> = (0..3).map(|_| tokio::spawn(Arc::clone(&load).write())).collect();
    tasks.push(tokio::spawn(Arc::clone(&load).sweep()));
    for number in 0..COPIES {
        while load.kept.lock().unwrap().len() < (number + 1) * 10 {
            tokio::task::yield_now().await;
        }
        let (copied, acknowledged) = (scratch(), load.kept.lock().unwrap().clone());
        let mut files = names(live.path());
        if number % 2 == 1 {
            files.reverse();
        }
        copy_live(live.path(), copied.path(), &files);
        let seen = judge_any_file(copied.path(), &acknowledged);
        println!("copy {number}: {} acknowledged, {} files: {seen:?}", acknowledged.len(), files.len());
        assert!(seen.is_ok(), "{seen:?}");
    }
    load.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
}
