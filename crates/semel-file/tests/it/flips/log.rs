//! A log worth damaging: several segments, every record known to the last byte.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Clock;
use semel::machine::settle::complete;
use semel::record::{PermitId, Record};
use semel::store::{Store, Swap, SwapReply};
use semel::{Key, Outcome, RecordId};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};

use crate::dice::Dice;
use crate::disk::{Image, SimulatedDisk, Survival};
use crate::sync::ready;

/// How much of the log is remembered for long; the rest can be swept after a minute.
const LASTING_PERCENT: u64 = 20;
const LASTING: Duration = Duration::from_hours(1);
const FLEETING: Duration = Duration::from_secs(10);

/// How the store stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Clean,
    PowerCut,
}

/// A disk, and what is on it.
pub(crate) struct Log {
    pub(crate) image: Image,
    pub(crate) ending: Ending,
    /// Every record of each key, in the order of the writes.
    pub(crate) histories: BTreeMap<RecordId, Vec<Arc<Record>>>,
    /// Which keys were written last, in one run.
    pub(crate) last_run: BTreeSet<RecordId>,
    /// Which keys are past their keep.
    pub(crate) over: BTreeSet<RecordId>,
    pub(crate) clock: ManualClock,
    segment_bytes: u64,
}

impl Log {
    /// A log of about this many bytes, in sixteen segments.
    pub(crate) fn of(bytes: usize, ending: Ending) -> Self {
        let disk = SimulatedDisk::new();
        let mut log = Self {
            image: Image::default(),
            ending,
            histories: BTreeMap::new(),
            last_run: BTreeSet::new(),
            over: BTreeSet::new(),
            clock: ManualClock::at(1_000_000_000_000),
            segment_bytes: (bytes / 16) as u64,
        };
        let store = log.open(&disk).unwrap();
        log.fill(&store, bytes);
        match ending {
            Ending::Clean => store.close().unwrap(),
            Ending::PowerCut => disk.power_goes_after(0),
        }
        let mut dice = Dice::new(0);
        log.image = disk.image().cut_to(Survival::Nothing, &mut dice);
        log
    }

    pub(crate) fn open(&self, disk: &SimulatedDisk) -> semel::Result<FileStore> {
        FileStore::on(Arc::new(disk.clone()))
            .clock(self.clock.clone())
            .segment_bytes(self.segment_bytes)
            .inline()
            .open()
    }

    /// Claims and completes, four keys at a time.
    fn fill(&mut self, store: &FileStore, bytes: usize) {
        let mut dice = Dice::new(7);
        let mut written = 0;
        for round in 0.. {
            let keys = (0..4).map(|number| Key::scoped(["flip"], "charge", &format!("{round}-{number}")));
            let keys: Vec<Key> = keys.map(Result::unwrap).collect();
            let claims: Vec<Swap> = keys.iter().map(|key| first(key, &mut dice)).collect();
            self.write(store, claims);
            let completes: Vec<Swap> = keys.iter().map(|key| self.complete(key, &mut dice)).collect();
            written += completes.iter().map(|swap| 500 + size(swap)).sum::<usize>();
            self.write(store, completes);
            if written >= bytes {
                return;
            }
        }
    }

    fn complete(&self, key: &Key, dice: &mut Dice) -> Swap {
        let found = self.histories.get(&key.id()).and_then(|history| history.last()).unwrap();
        // In a large log few large ones: every record is looked at after every flip.
        let bytes = dice.place(usize::try_from(self.segment_bytes / 16).unwrap());
        let outcome = Outcome::success(dice.bytes(bytes));
        let permit_id = PermitId::new(u128::from(found.version.get()));
        let write = complete(Some(found), permit_of(found, permit_id), &outcome, self.clock.now()).write;
        let write = sample::written(write).unwrap();
        Swap { expected: Some(found.version), next: write.next, keep: write.keep }
    }

    fn write(&mut self, store: &FileStore, batch: Vec<Swap>) {
        self.last_run = batch.iter().map(Swap::id).collect();
        for reply in ready(store.swap(batch.into())).unwrap().value {
            let SwapReply::Swapped(record) = reply else { panic!("{reply:?}") };
            self.histories.entry(record.key.id()).or_default().push(record);
        }
    }

    /// Lets a minute pass: what does not last may be there from now on, or gone.
    pub(crate) fn pass_a_minute(&mut self) {
        self.clock.advance(Duration::from_mins(1));
        let is_over =
            |history: &Vec<Arc<Record>>| history.last().is_some_and(|last| last.retention == FLEETING);
        self.over =
            self.histories.iter().filter(|(_, history)| is_over(history)).map(|(id, _)| *id).collect();
    }
}

fn first(key: &Key, dice: &mut Dice) -> Swap {
    let retention = if dice.happens(LASTING_PERCENT) { LASTING } else { FLEETING };
    let mut ask = sample::ask(key);
    (ask.retention, ask.lease) = (retention, Duration::from_secs(5));
    let write = sample::running(&ask).unwrap();
    Swap { expected: None, next: write.next, keep: write.keep }
}

fn permit_of(record: &Record, otherwise: PermitId) -> PermitId {
    match &record.state {
        semel::record::State::Running(running) => running.grant.permit_id,
        _ => otherwise,
    }
}

fn size(swap: &Swap) -> usize {
    swap.next.unstamped().outcome().map_or(0, |outcome| outcome.bytes().len())
}
