//! One record in a shard, with what is read without looking into it.

use std::sync::Arc;

use crate::clock::{Timestamp, micros};
use crate::key::RecordId;
use crate::record::{Draft, Record, State};

/// The longest keep: a record that is never swept.
const FOREVER: u64 = u64::MAX;

/// What the allocator and the table add to a record, beside its own bytes.
const OVERHEAD_BYTES: usize = 80;

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

/// As large as a line of the processor's cache: to find a record, or to find that it has changed, touches nothing else.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: RecordId,
    pub(super) record: Arc<Record>,
    kept_until_micros: u64,
    pub(super) cost_bytes: usize,
    /// When its shard will next look at it.
    pub(super) looked_at: Tick,
    /// When the work was done; never, if it is not.
    pub(super) done_at: Tick,
}

impl Slot {
    pub(super) fn new(record: Arc<Record>, kept_until: Option<Timestamp>, epoch: Timestamp) -> Self {
        let done_at = match &record.state {
            // What is kept for ever is never among the oldest that may be forgotten.
            State::Done(done) if kept_until.is_some() => Tick::of(done.settled_at, epoch),
            State::Done(_) | State::Running(_) | State::Released(_) | State::Held(_) => Tick::NEVER,
        };
        Self {
            id: record.key.id(),
            kept_until_micros: kept_until.map_or(FOREVER, Timestamp::as_micros),
            cost_bytes: cost_bytes(&record),
            looked_at: Tick::NEVER,
            done_at,
            record,
        }
    }

    pub(super) fn is_kept_at(&self, now: Timestamp) -> bool {
        now.as_micros() < self.kept_until_micros
    }

    /// From when on a sweep may find it past its keep.
    pub(super) fn due(&self, epoch: Timestamp) -> Tick {
        match self.kept_until_micros {
            FOREVER => Tick::NEVER,
            until => Tick::of(Timestamp::from_micros(until), epoch),
        }
    }

    /// When to look at a record that is new: a run that is completed soon is then looked at once, and not twice.
    pub(super) fn first_look(&self, epoch: Timestamp) -> Tick {
        let lease_micros = match &self.record.state {
            State::Running(running) => micros(running.lease),
            State::Done(_) | State::Released(_) | State::Held(_) => 0,
        };
        match self.kept_until_micros {
            FOREVER => Tick::NEVER,
            until => Tick::of(Timestamp::from_micros(until.saturating_sub(lease_micros)), epoch),
        }
    }
}

/// What a record costs, with the slot that points at it.
fn cost_bytes(record: &Record) -> usize {
    record.heap_bytes().saturating_add(size_of::<Slot>()).saturating_add(OVERHEAD_BYTES)
}

/// What a draft will cost: stamping it changes no length.
pub(super) fn draft_cost_bytes(draft: &Draft) -> usize {
    cost_bytes(draft.unstamped())
}
