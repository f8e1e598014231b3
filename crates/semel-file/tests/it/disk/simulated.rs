//! A disk in memory that remembers every operation and loses its power when it is told to.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel_file::disk::{Disk, DiskFile};

use super::image::Image;
use super::operation::{FileNumber, Operation};
use crate::dice::Dice;

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

struct State {
    image: Image,
    journal: Vec<Operation>,
    syncs: Syncs,
    power: Power,
    /// How often something was read from what is in memory already.
    cached_reads: u64,
}

/// What a sync is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    /// What was written before it lasts.
    Honest,
    /// It says so, and does nothing: the negative control of every test that cuts the power.
    Lying,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    /// It goes in the middle of the operation after so many more.
    After(u64),
    Off,
}

impl SimulatedDisk {
    /// An empty disk.
    pub(crate) fn new() -> Self {
        Self::holding(Image::default(), Syncs::Honest)
    }

    /// A disk that was found like this.
    pub(crate) fn holding(image: Image, syncs: Syncs) -> Self {
        let state = State { image, journal: Vec::new(), syncs, power: Power::On, cached_reads: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations were done.
    pub(crate) fn operations(&self) -> usize {
        self.state().journal.len()
    }

    /// All operations that were done, in order.
    pub(crate) fn journal(&self) -> Vec<Operation> {
        self.state().journal.clone()
    }

    /// The disk as it is, with what would be lost.
    pub(crate) fn image(&self) -> Image {
        self.state().image.clone()
    }

    /// Lets the power go in the middle of the operation after `more` others: it may take effect in part, and
    /// whatever comes later fails.
    pub(crate) fn power_goes_after(&self, more: u64) {
        self.state().power = Power::After(more);
    }

    /// Takes back that the power is about to go, if it has not gone yet.
    pub(crate) fn power_stays_on(&self) {
        let mut state = self.state();
        if state.power != Power::Off {
            state.power = Power::On;
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state().power == Power::Off
    }

    /// The disk as it is found after the power was cut now. What still holds the old one can do no more harm.
    pub(crate) fn cut(&self, dice: &mut Dice) -> Self {
        let mut state = self.state();
        state.power = Power::Off;
        Self::holding(state.image.cut(dice), state.syncs)
    }

    fn operate(&self, operation: Operation) -> io::Result<()> {
        let mut state = self.state();
        let lied =
            state.syncs == Syncs::Lying && matches!(operation, Operation::Sync { .. } | Operation::SyncNames);
        match state.power {
            Power::Off => return Err(no_power()),
            Power::After(0) => {
                state.power = Power::Off;
                // It is on its way to the disk, and the cut decides how much of it arrives. A sync that did not
                // end promises nothing.
                if !matches!(operation, Operation::Sync { .. } | Operation::SyncNames) {
                    state.image.apply(&operation)?;
                    state.journal.push(operation);
                }
                return Err(no_power());
            }
            Power::After(more) => state.power = Power::After(more - 1),
            Power::On => {}
        }
        if !lied {
            state.image.apply(&operation)?;
        }
        state.journal.push(operation);
        Ok(())
    }

    fn read<T>(&self, read: impl FnOnce(&Image) -> io::Result<T>) -> io::Result<T> {
        let state = self.state();
        if state.power == Power::Off { Err(no_power()) } else { read(&state.image) }
    }

    fn handle(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.read(|image| image.find(name))?;
        Ok(Arc::new(Handle { disk: self.clone(), file }))
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is gone")
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.read(|image| Ok(image.names().map(|(name, _)| name.clone()).collect()))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.operate(Operation::Create { name: name.to_owned() })?;
        self.handle(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.handle(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operate(Operation::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operate(Operation::Remove { name: name.to_owned() })
    }

    fn sync_names(&self) -> io::Result<()> {
        self.operate(Operation::SyncNames)
    }
}

/// An open file, whatever it is called by now.
struct Handle {
    disk: SimulatedDisk,
    file: FileNumber,
}

impl DiskFile for Handle {
    fn bytes(&self) -> io::Result<u64> {
        self.disk.read(|image| Ok(image.bytes(self.file).len() as u64))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.read(|image| {
            let content = image.bytes(self.file);
            let start = to_usize(offset).min(content.len());
            let count = into.len().min(content.len() - start);
            into[..count].copy_from_slice(&content[start..start + count]);
            Ok(count)
        })
    }

    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.disk.state().cached_reads += 1;
        // Every third time the bytes are somewhere else, so that both ways of reading are gone.
        if self.disk.state().cached_reads.is_multiple_of(3) {
            return Ok(None);
        }
        let wanted = into.len();
        let read = self.read_at(into, offset)?;
        Ok((read == wanted).then_some(read))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (file, offset) = (self.file, to_usize(offset));
        self.disk.operate(Operation::Write { file, offset, bytes: bytes.to_vec() })
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.disk.operate(Operation::SetBytes { file: self.file, bytes: to_usize(bytes) })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.operate(Operation::Sync { file: self.file })
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
