//! One run of the workload on a disk that remembers every operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use semel::clock::Clock;
use semel_file::FileStore;
use semel_file::disk::Disk;
use semel_testkit::ManualClock;

use super::expected::Expected;
use super::ledger::Ledger;
use super::workload::Workload;
use crate::dice::Dice;
use crate::disk::{Image, Operation, SimulatedDisk, Syncs};

/// Small, so that segments are sealed, swept empty and reclaimed within a short run.
pub(crate) const SEGMENT_BYTES: u64 = 32 << 10;
pub(crate) const KEYS: usize = 40;
/// How often the store is opened in a run, and how much is done each time.
const LIVES: usize = 5;
const STEPS: usize = 100;

/// What was done to the disk, and what callers were told meanwhile.
pub(crate) struct Recorded {
    pub(crate) journal: Vec<Operation>,
    pub(crate) ledger: Ledger,
}

/// The run of a seed, recorded when it is first asked for.
pub(crate) fn recorded(seed: u64) -> Arc<Recorded> {
    static RUNS: Mutex<BTreeMap<u64, Arc<Recorded>>> = Mutex::new(BTreeMap::new());
    Arc::clone(RUNS.lock().unwrap().entry(seed).or_insert_with(|| Arc::new(record(seed))))
}

pub(crate) fn open(disk: &(impl Disk + Clone), clock: impl Clock) -> semel::Result<FileStore> {
    FileStore::on(Arc::new(disk.clone())).clock(clock).segment_bytes(SEGMENT_BYTES).inline().open()
}

fn record(seed: u64) -> Recorded {
    let disk = SimulatedDisk::new();
    let mut workload = Workload::new(seed, KEYS);
    for life in 0..LIVES {
        let store = open(&disk, workload.clock.clone()).unwrap();
        workload.run(STEPS, &store, || disk.operations()).unwrap();
        if life % 2 == 0 {
            store.close().unwrap();
        } else {
            // The process is killed: nothing of it runs any more, and nothing on the disk is lost.
            std::mem::forget(store);
        }
    }
    let journal = disk.journal();
    // A run without sealed segments, sweeps and reclaiming would prove little.
    let removed = journal.iter().filter(|operation| matches!(operation, Operation::Remove { .. })).count();
    println!(
        "run {seed}: {} operations, {} acknowledged, {} swept, {removed} files removed",
        journal.len(),
        workload.ledger.len(),
        workload.swept
    );
    assert!(workload.ledger.len() > 300 && workload.swept > 20 && removed > 4);
    Recorded { journal, ledger: workload.ledger }
}

/// The disk after the first operations of a journal; what was not synced by then may be lost.
pub(crate) fn replay(journal: &[Operation], syncs: Syncs) -> Image {
    let mut image = Image::default();
    for operation in journal {
        let is_sync = matches!(operation, Operation::Sync { .. } | Operation::SyncNames);
        if !(is_sync && syncs == Syncs::Lying) {
            image.apply(operation).unwrap();
        }
    }
    image
}

/// The disk before the first operation of a journal, and after each.
pub(crate) fn replay_each(journal: &[Operation]) -> Vec<Image> {
    let mut images = vec![Image::default()];
    for operation in journal {
        let mut image = images.last().cloned().unwrap_or_default();
        image.apply(operation).unwrap();
        images.push(image);
    }
    images
}

/// Opens what a power cut left, holds it against what must be there, goes on, cuts once more, and looks again.
pub(crate) fn survives(
    image: Image,
    syncs: Syncs,
    expected: &Expected,
    dice: &mut Dice,
) -> Result<(), String> {
    // A machine that comes back may have lost its clock.
    let clock =
        |dice: &mut Dice| ManualClock::at(if dice.happens(50) { 1 } else { expected.clock.as_micros() });
    let disk = SimulatedDisk::holding(image, syncs);
    let store = open(&disk, clock(dice)).map_err(|error| format!("does not open: {error:?}"))?;
    expected.check(&store)?;
    let after = go_on(&store, expected, dice)?;
    let disk = disk.cut(dice);
    drop(store);
    let store = open(&disk, clock(dice)).map_err(|error| format!("does not open again: {error:?}"))?;
    after.check(&store).map_err(|what| format!("after another cut: {what}"))
}

/// Writes to every key once more: it must be taken, under a version greater than any that was acknowledged.
fn go_on(store: &FileStore, expected: &Expected, dice: &mut Dice) -> Result<Expected, String> {
    let mut caller = Workload::new(dice.number(0, u64::MAX), KEYS);
    let told = |error: semel::Error| format!("takes no new writes: {error:?}");
    let batch = caller.touch_all(store).map_err(told)?;
    caller.carry(&batch, store, &|| 1).map_err(told)?;
    if caller.ledger.len() < batch.len() {
        return Err(format!("of {} new writes {} were taken", batch.len(), caller.ledger.len()));
    }
    let mut after = expected.clone();
    for (record, keep) in caller.ledger.acknowledgements() {
        let life = expected.lives.get(&record.key.id());
        if life.is_some_and(|life| record.version <= life.version()) {
            return Err(format!("{}: {:?} came again", record.key.id().short(), record.version));
        }
        after.acknowledge(record, keep);
    }
    Ok(after)
}
