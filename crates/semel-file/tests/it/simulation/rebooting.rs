//! A store on a machine whose power goes every now and then, and comes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::RecordId;
use semel::store::{Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel_file::FileStore;
use semel_testkit::simulator::StoreClock;

use crate::dice::Dice;
use crate::disk::{Image, SimulatedDisk, Syncs};
use crate::sync::ready;

/// Small, so that segments are sealed and reclaimed within a world.
const SEGMENT_BYTES: u64 = 16 << 10;
/// Of a hundred calls, how many begin with the power about to go.
const CUT_PERCENT: u64 = 8;
/// Of a hundred calls, how many find the store stopped and started cleanly.
const RESTART_PERCENT: u64 = 3;
/// Of a hundred starts after a cut, how many are cut as well.
const CUT_AGAIN_PERCENT: u64 = 25;
/// How many calls the power stays on after a cut: an ask that is tried again must get through some day.
const CALM_CALLS: u64 = 4;
/// How many operations a cut may be away.
const OPERATIONS_MOST: u64 = 6;

/// A store whose machine loses its power at random calls.
pub(crate) struct Rebooting(Arc<Mutex<Machine>>);

/// The machine: a disk, and the store on it.
pub(crate) struct Machine {
    disk: SimulatedDisk,
    store: Option<FileStore>,
    clock: StoreClock,
    dice: Dice,
    /// For how many more calls the power stays on.
    calm: u64,
    /// How often the power went.
    pub(crate) cuts: u64,
    /// Why the store did not open, if it ever did not.
    pub(crate) refused: Option<String>,
}

impl Rebooting {
    /// A machine that was never on, and the store on it.
    pub(crate) fn new(clock: StoreClock, seed: u64, syncs: Syncs) -> (Self, Arc<Mutex<Machine>>) {
        let disk = SimulatedDisk::holding(Image::default(), syncs);
        let mut machine =
            Machine { disk, store: None, clock, dice: Dice::new(seed), calm: 0, cuts: 0, refused: None };
        machine.start();
        let machine = Arc::new(Mutex::new(machine));
        (Self(Arc::clone(&machine)), machine)
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T: Unpin>(&self, ask: impl FnOnce(&FileStore) -> Reply<T>) -> Reply<T> {
        let answer = self.machine().ask(ask);
        Reply::ready(answer)
    }
}

impl Machine {
    fn ask<T: Unpin>(
        &mut self,
        ask: impl FnOnce(&FileStore) -> Reply<T>,
    ) -> semel::Result<semel::store::Answer<T>> {
        if self.dice.happens(RESTART_PERCENT) {
            drop(self.store.take());
            self.start();
        }
        let is_calm = self.calm > 0;
        self.calm = self.calm.saturating_sub(1);
        if self.dice.happens(CUT_PERCENT) && !is_calm {
            self.disk.power_goes_after(self.dice.number(0, OPERATIONS_MOST));
        }
        let Some(store) = &self.store else {
            let why = self.refused.clone().unwrap_or_default();
            return Err(semel::Error::new(semel::ErrorKind::Unavailable, why));
        };
        let answer = ready(ask(store));
        if self.disk.is_off() {
            self.start();
        }
        answer
    }

    /// Starts the store, with the power back on; it may go once more meanwhile.
    fn start(&mut self) {
        loop {
            if self.disk.is_off() {
                (self.cuts, self.calm) = (self.cuts + 1, CALM_CALLS);
                self.disk = self.disk.cut(&mut self.dice);
                self.store = None;
                if self.dice.happens(CUT_AGAIN_PERCENT) {
                    self.disk.power_goes_after(self.dice.number(0, OPERATIONS_MOST));
                }
            }
            let opened = FileStore::on(Arc::new(self.disk.clone()))
                .clock(self.clock)
                .segment_bytes(SEGMENT_BYTES)
                .inline()
                .open();
            match opened {
                Ok(store) => {
                    self.disk.power_stays_on();
                    self.store = Some(store);
                }
                Err(_) if self.disk.is_off() => continue,
                Err(error) => self.refused = Some(format!("{error:?}")),
            }
            return;
        }
    }
}

impl Store for Rebooting {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.ask(|store| store.swap(batch))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.ask(|store| store.load(ids))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.ask(|store| store.sweep(limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.ask(|store| store.scan(scan))
    }
}
