//! The next segment cannot be prepared: nothing that was acknowledged is at stake, so it is tried again, new claims are
//! refused with the reason meanwhile, and what runs can end.

use std::collections::HashMap;
use std::sync::Arc;

use semel::machine::settle::complete;
use semel::record::{Record, State};
use semel::store::{Store, Swap, SwapReply};
use semel::{ErrorKind, Key, Outcome};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};
use tokio::runtime::Runtime;

use crate::dice::Dice;
use crate::disk::{Image, Operation, Refusal, RefusingDisk, SimulatedDisk, Step, Survival, Syncs};

const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EROFS: i32 = 30;

const SEGMENT_BYTES: u64 = 16 << 10;
/// More claims than two segments of these tests hold.
const CLAIMS_MOST: usize = 2_000;

/// Whose threads do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    Own,
    Callers,
}

struct Bench {
    below: SimulatedDisk,
    disk: RefusingDisk,
    store: FileStore,
    runtime: Runtime,
    claimed: usize,
}

impl Bench {
    fn new(threads: Threads, step: Step, refusal: Refusal, times: u64) -> Self {
        Self::on(SimulatedDisk::new(), threads, step, refusal, times)
    }

    fn on(below: SimulatedDisk, threads: Threads, step: Step, refusal: Refusal, times: u64) -> Self {
        let disk = RefusingDisk::new(Arc::new(below.clone()), step, refusal, times);
        let store = opened(Arc::new(disk.clone()), threads);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { below, disk, store, runtime, claimed: 0 }
    }

    fn try_swap(&self, swap: Swap) -> semel::Result<SwapReply> {
        self.runtime.block_on(self.store.swap([swap].into())).map(|mut answer| answer.value.remove(0))
    }

    /// A claim of a key that has no record.
    fn try_claim(&mut self) -> semel::Result<SwapReply> {
        self.claimed += 1;
        let key = Key::scoped(["preparing"], "charge", &format!("order-{}", self.claimed)).unwrap();
        let write = sample::running(&sample::ask(&key)).unwrap();
        self.try_swap(Swap { expected: None, next: write.next, keep: write.keep })
    }

    /// Claims until one is refused: the records that run, and the words of the refusal.
    fn claim_until_refused(&mut self) -> (Vec<Arc<Record>>, String) {
        let mut running = Vec::new();
        for _ in 0..CLAIMS_MOST {
            match self.try_claim().expect("the store goes on") {
                SwapReply::Swapped(record) => running.push(record),
                SwapReply::Refused(why) if why.kind() == ErrorKind::Unavailable => {
                    return (running, why.to_string());
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("{CLAIMS_MOST} claims were taken without a next segment");
    }

    fn complete(&self, record: &Record) -> Arc<Record> {
        let State::Running(running) = &record.state else { panic!("{record:?}") };
        let outcome = Outcome::success("done");
        let write = complete(Some(record), running.grant.permit_id, &outcome, record.changed_at).write;
        let write = sample::written(write).unwrap();
        let swap = Swap { expected: Some(record.version), next: write.next, keep: write.keep };
        match self.try_swap(swap) {
            Ok(SwapReply::Swapped(record)) => record,
            other => panic!("an ending was answered with {other:?}"),
        }
    }

    /// Claims until enough were taken to need more segments; refusals in between are forgotten.
    fn claim_over_segments(&mut self) -> Vec<Arc<Record>> {
        let mut taken = Vec::new();
        for _ in 0..CLAIMS_MOST * 100 {
            match self.try_claim().expect("the store goes on") {
                SwapReply::Swapped(record) => taken.push(record),
                SwapReply::Refused(_) => std::thread::yield_now(),
                other => panic!("{other:?}"),
            }
            if taken.len() >= 150 {
                return taken;
            }
        }
        panic!("{} claims were taken after the disk was mended", taken.len());
    }

    /// Whether the records are there when the power goes now, and the store is opened again.
    fn survives_a_cut(self, records: &[Arc<Record>]) -> bool {
        let image = self.below.image().cut_to(Survival::Nothing, &mut Dice::new(0));
        drop(self.store);
        let store = opened(Arc::new(SimulatedDisk::holding(image, Syncs::Honest)), Threads::Callers);
        let ids = records.iter().map(|record| record.key.id()).collect();
        let found = self.runtime.block_on(store.load(ids)).unwrap().value;
        found.into_iter().map(|found| found.unwrap()).eq(records.iter().cloned().map(Some))
    }
}

fn opened(disk: Arc<dyn semel_file::disk::Disk>, threads: Threads) -> FileStore {
    let clock = ManualClock::at(1_000_000_000_000);
    let builder = FileStore::on(disk).clock(clock).segment_bytes(SEGMENT_BYTES);
    match threads {
        Threads::Own => builder.open().unwrap(),
        Threads::Callers => builder.inline().open().unwrap(),
    }
}

/// Every error at every step, and one of them at each step for stores with threads: those wait for the next try.
fn cases() -> impl Iterator<Item = (Threads, Step, i32)> {
    let inline = [EIO, EACCES, ENFILE, EMFILE, EROFS]
        .into_iter()
        .flat_map(|error| Step::ALL.map(|step| (Threads::Callers, step, error)));
    let threaded = Step::ALL.into_iter().zip([EMFILE, EIO, EIO, EACCES, EIO]);
    inline.chain(threaded.map(|(step, error)| (Threads::Own, step, error)))
}

#[test]
fn a_passing_error_while_a_segment_is_prepared_needs_no_restart() {
    for (threads, step, error) in cases() {
        let mut bench = Bench::new(threads, step, Refusal::Errno(error), 1);
        if threads == Threads::Own {
            bench.disk.wait_until_made();
        }
        let taken = bench.claim_over_segments();
        assert_eq!(bench.disk.refused(), 1, "{threads:?}, {step:?}, error {error}");
        assert!(bench.survives_a_cut(&taken), "{threads:?}, {step:?}, error {error}");
    }
}

#[test]
fn a_disk_that_lies_about_its_syncs_after_a_passing_error_is_found_out() {
    let below = SimulatedDisk::holding(Image::default(), Syncs::Lying);
    let mut bench = Bench::on(below, Threads::Callers, Step::Sync, Refusal::Errno(EIO), 1);
    let taken = bench.claim_over_segments();
    assert!(!bench.survives_a_cut(&taken));
}

#[test]
fn while_a_segment_cannot_be_prepared_claims_are_refused_with_the_reason_and_runs_end() {
    for (threads, step, error) in cases() {
        let mut bench = Bench::new(threads, step, Refusal::Errno(error), u64::MAX);
        bench.disk.wait_until_refused(1);
        let (running, why) = bench.claim_until_refused();
        let reason = std::io::Error::from_raw_os_error(error).to_string();
        assert!(why.contains(&reason) && why.contains("00000002"), "{threads:?}, {step:?}: {why}");
        let mut done: Vec<_> = running.iter().map(|record| bench.complete(record)).collect();
        bench.disk.heal();
        if threads == Threads::Own {
            bench.disk.wait_until_made();
        }
        done.extend(bench.claim_over_segments());
        assert!(bench.survives_a_cut(&done), "{threads:?}, {step:?}, error {error}");
    }
}

#[test]
fn a_maintenance_thread_that_panics_stops_the_store_with_a_reason() {
    let mut bench = Bench::new(Threads::Own, Step::Create, Refusal::Panic, 1);
    bench.disk.wait_until_refused(1);
    let mut taken = Vec::new();
    let stopped = (0..CLAIMS_MOST).find_map(|_| match bench.try_claim() {
        Ok(SwapReply::Swapped(record)) => {
            taken.push(record);
            None
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Some(error),
    });
    let stopped = stopped.expect("without its maintenance thread the store stops");
    assert!(stopped.to_string().contains("maintenance thread"), "{stopped}");
    let later = bench.try_claim().expect_err("a stopped store takes nothing");
    assert_eq!(later.kind(), ErrorKind::Unavailable);
    assert!(later.to_string().contains("maintenance thread"), "{later}");
    assert!(bench.survives_a_cut(&taken));
}

/// A sync of the log waits behind whatever the disk has still to write: a whole segment of zeros would be a pause.
#[test]
fn at_most_a_piece_of_a_segment_waits_for_its_sync() {
    let disk = SimulatedDisk::new();
    let builder = FileStore::on(Arc::new(disk.clone())).clock(ManualClock::at(1_000_000_000_000));
    drop(builder.segment_bytes(4 << 20).inline().open().unwrap());
    let (mut waiting, mut waited_most) = (HashMap::new(), 0);
    for operation in disk.journal() {
        match operation {
            Operation::Write { file, bytes, .. } => {
                let waits = waiting.entry(file).or_insert(0);
                *waits += bytes.len();
                waited_most = waited_most.max(*waits);
            }
            Operation::Sync { file } => drop(waiting.remove(&file)),
            _ => {}
        }
    }
    assert_eq!(waited_most, 1 << 20);
}
