//! One record in one allocation: a fixed head that is read without decoding, and the payload.

use std::cell::Cell;

use crate::clock::Timestamp;
use crate::codec;
use crate::error::Result;
use crate::key::{Key, RecordId};
use crate::record::{Draft, Record, State, Version};

/// The longest keep: a record that is never swept.
const FOREVER: u64 = u64::MAX;

/// id, version, kept until, when its shard will next look at it, and when it was done.
const HEAD_BYTES: usize = 32 + 8 + 8 + 4 + 4;

/// More than a new record takes beside its texts and bytes, head and allocation included.
const NEW_RECORD_BYTES: usize = HEAD_BYTES + 224;

/// Moments in steps of about 16 ms, counted from the epoch of the store that uses them: they fit four bytes
/// for two years, and a shard remembers two of them a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tick(pub(super) u32);

impl Tick {
    /// Never: kept for ever, or not done.
    pub(super) const NEVER: Self = Self(u32::MAX);
    const MICROS_SHIFT: u32 = 14;

    /// The tick that `moment` falls into; moments too far away fall into the last one before never.
    pub(super) fn of(moment: Timestamp, epoch: Timestamp) -> Self {
        let ticks = moment.as_micros().saturating_sub(epoch.as_micros()) >> Self::MICROS_SHIFT;
        Self(u32::try_from(ticks).map_or(u32::MAX - 1, |ticks| ticks.min(u32::MAX - 1)))
    }
}

thread_local! {
    /// Where a record is written before its size is known: packing then costs one allocation that fits.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A scratch that one large outcome made larger than this is not kept.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Packed(Box<[u8]>);

impl Packed {
    pub(super) fn new(record: &Record, kept_until: Option<Timestamp>, epoch: Timestamp) -> Self {
        let done_at = match &record.state {
            // What is kept for ever is never among the oldest that may be forgotten.
            State::Done(done) if kept_until.is_some() => Tick::of(done.settled_at, epoch),
            State::Done(_) | State::Running(_) | State::Released(_) | State::Held(_) => Tick::NEVER,
        };
        let mut bytes = SCRATCH.take();
        bytes.clear();
        bytes.extend_from_slice(record.key.id().as_bytes());
        bytes.extend_from_slice(&record.version.get().to_le_bytes());
        bytes.extend_from_slice(&kept_until.map_or(FOREVER, Timestamp::as_micros).to_le_bytes());
        bytes.extend_from_slice(&Tick::NEVER.0.to_le_bytes());
        bytes.extend_from_slice(&done_at.0.to_le_bytes());
        codec::encode_payload(&mut bytes, record);
        let packed = Self(bytes.as_slice().into());
        if bytes.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(bytes);
        }
        packed
    }

    /// At least what a record that is new to the store will cost: what room is taken by before it is packed.
    pub(super) fn cost_bytes_at_most(draft: &Draft) -> usize {
        let record = draft.unstamped();
        let texts = record
            .key
            .text()
            .len()
            .saturating_add(record.first_event.as_ref().map_or(0, |event| event.len()));
        let state = match &record.state {
            State::Running(running) => running.owner.len(),
            State::Done(done) => [
                done.outcome.bytes().len(),
                done.outcome.kind().as_str().len(),
                done.outcome.primary().map_or(0, str::len),
                done.outcome.secondary().map_or(0, str::len),
                done.outcome.details_json().map_or(0, str::len),
            ]
            .into_iter()
            .fold(0, usize::saturating_add),
            State::Released(released) => released.reason.len(),
            State::Held(held) => held.reason.len(),
        };
        let steps = record.steps().iter().fold(0_usize, |sum, step| {
            sum.saturating_add(step.name.len()).saturating_add(step.value.len()).saturating_add(20)
        });
        [texts, state, steps].into_iter().fold(NEW_RECORD_BYTES, usize::saturating_add)
    }

    /// What this record costs, with the slot that points at it.
    pub(super) fn cost_bytes(&self) -> usize {
        self.0.len().saturating_add(size_of::<Self>())
    }

    pub(super) fn id_bytes(&self) -> &[u8; 32] {
        self.0.first_chunk::<32>().unwrap_or(&[0; 32])
    }

    pub(super) fn version(&self) -> Version {
        Version::new(self.u64_at(32))
    }

    pub(super) fn is_kept_at(&self, now: Timestamp) -> bool {
        let until = self.u64_at(40);
        until == FOREVER || now.as_micros() < until
    }

    pub(super) fn kept_until(&self) -> Option<Timestamp> {
        let until = self.u64_at(40);
        (until != FOREVER).then(|| Timestamp::from_micros(until))
    }

    pub(super) fn looked_at(&self) -> Tick {
        Tick(self.chunk_at::<4>(48).map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    /// When the work was done; never, if it is not.
    pub(super) fn done_at(&self) -> Tick {
        Tick(self.chunk_at::<4>(52).map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    pub(super) fn set_looked_at(&mut self, tick: Tick) {
        if let Some(bytes) = self.0.get_mut(48..52) {
            bytes.copy_from_slice(&tick.0.to_le_bytes());
        }
    }

    /// The record; a caller that holds its key lends it, which spares a copy and shows a collision.
    pub(super) fn unpack(&self, lent: Option<&Key>) -> Result<Record> {
        let payload = self.0.get(HEAD_BYTES..).unwrap_or_default();
        codec::decode_payload(payload, |text| match lent {
            Some(key) if key.text().as_bytes() == text => Ok(key.clone()),
            _ => Ok(Key::trusted(RecordId::from_bytes(*self.id_bytes()), codec::text(text)?)),
        })
    }

    fn u64_at(&self, at: usize) -> u64 {
        self.chunk_at::<8>(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn chunk_at<const N: usize>(&self, at: usize) -> Option<&[u8; N]> {
        self.0.get(at..).and_then(<[u8]>::first_chunk::<N>)
    }
}
