//! One bound on the memory that covered requests make the process hold, with a share for each caller.
//!
//! Counted are request bodies, responses that are being kept, and stored responses that wait for their client: from when
//! they are read until the last reference to their bytes is gone, also inside of a connection that cannot send them.
//!
//! | what | may use, of all | may use, of the caller's share |
//! |---|---|---|
//! | admissions: request bodies, replays, the first room of a run | three quarters | all of it |
//! | the response of a run that was granted | everything | twice the share |
//!
//! An admission that finds no room is refused, and nothing ran. A run has run: its response has priority, and waits a
//! while for room before it is passed on without being kept. So a caller that reads nothing fills its own share, and
//! neither the runs of others nor their requests hear of it.
//!
//! The bound on all bytes is strict, but for what was read before it could be counted: one piece of each body that is
//! being read. A share may be passed by as many pieces as threads take at the same moment.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::caller::Caller;

/// How many counters of callers there are in each of two rows.
const COUNTERS: usize = 4_096;
/// The first room of a request: for its body, and as much for its response.
const FIRST_ROOM_MAX: usize = 8 << 10;
/// So many requests of one caller fit into its share, whatever the budget.
const REQUESTS_A_SHARE: usize = 8_192;
/// The smallest share that is worth having: some bodies of the default size.
const CALLER_MIN: usize = 4 << 20;
/// Bytes up to this are no longer counted once a connection has taken them: they weigh about what its stream does, and
/// streams have bounds of their own.
const UNCOUNTED_MAX: usize = 1 << 10;
/// How long the response of a run waits for room before it is passed on without being kept.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(10);

/// A bound on the bytes in memory.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limits: Limits,
    held: AtomicUsize,
    callers: CallerCounters,
    /// How many runs wait for room, and what wakes them.
    waiting: AtomicUsize,
    room: Notify,
}

/// How much may be held, in bytes.
#[derive(Clone, Copy, Debug)]
struct Limits {
    all: usize,
    all_admitted: usize,
    caller: usize,
    caller_admitted: usize,
}

/// What each caller holds, in a fixed number of counters and without a lock.
///
/// A caller has one counter in each of two rows, by a keyed hash, and holds at most the smaller of the two. Two callers
/// disturb each other only if they meet in both rows, which no caller can bring about on purpose.
#[derive(Debug)]
struct CallerCounters {
    rows: [Box<[AtomicUsize]>; 2],
    hashed_by: RandomState,
}

/// Where the counters of one caller are.
#[derive(Clone, Copy, Debug, Default)]
struct Places([u16; 2]);

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// All callers together hold what they may.
    InAll,
    /// This caller holds what one caller may.
    ForCaller,
}

/// What bytes are reserved for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// A request or a replay: it may be refused.
    #[default]
    Admission,
    /// The response of a run that was granted.
    Granted,
}

/// Bytes reserved of a budget, and how many of them are in use; given back when dropped. Without a budget, by default,
/// it has room for everything.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    budget: Option<Arc<MemoryBudget>>,
    places: Places,
    purpose: Purpose,
    bytes: usize,
    used: usize,
}

/// The rooms of a request that was admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// For its body.
    pub(crate) request: Reserved,
    /// For the response to it.
    pub(crate) response: Reserved,
}

impl MemoryBudget {
    /// A budget of `bytes_max` in all, of which a caller has `caller_bytes_max`; a quarter, if that is not said.
    pub(crate) fn new(bytes_max: usize, caller_bytes_max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            limits: Limits::new(bytes_max, caller_bytes_max),
            held: AtomicUsize::new(0),
            callers: CallerCounters::new(),
            waiting: AtomicUsize::new(0),
            room: Notify::new(),
        })
    }

    /// How many bytes are reserved.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Room for a request of this caller and for the response to it, before anything of it is read.
    pub(crate) fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Admitted, NoRoom> {
        let places = self.callers.places(caller);
        let mut request = Reserved { budget: Some(Arc::clone(self)), places, ..Reserved::default() };
        request.reserve(self.limits.first_room())?;
        let response = request.split(self.limits.first_room() / 2);
        Ok(Admitted { request, response })
    }

    /// Reserves bytes, if there is room for them.
    fn take(&self, places: Places, purpose: Purpose, bytes: usize) -> Result<(), NoRoom> {
        let (all_max, caller_max) = match purpose {
            Purpose::Admission => (self.limits.all_admitted, self.limits.caller_admitted),
            Purpose::Granted => (self.limits.all, self.limits.caller),
        };
        if self.callers.held(places).saturating_add(bytes) > caller_max {
            return Err(NoRoom::ForCaller);
        }
        let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= all_max);
        // Sequentially consistent, here and in `give_back`: a run that finds no room either sees what was given back, or
        // is seen to wait by the one that gives it back.
        let taken = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.map_err(|_| NoRoom::InAll)?;
        self.callers.add(places, bytes);
        Ok(())
    }

    fn give_back(&self, places: Places, bytes: usize) {
        self.callers.subtract(places, bytes);
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.room.notify_waiters();
        }
    }
}

impl Limits {
    fn new(all: usize, caller: Option<usize>) -> Self {
        let all_admitted = all.saturating_sub(all / 4);
        let share = caller.unwrap_or_else(|| default_share(all)).min(all);
        Self { all, all_admitted, caller: share.saturating_mul(2).min(all), caller_admitted: share }
    }

    fn first_room(self) -> usize {
        (self.caller_admitted / REQUESTS_A_SHARE).min(FIRST_ROOM_MAX)
    }
}

/// The share of a caller if none is set: a quarter of all, but not less than some bodies.
pub(crate) fn default_share(bytes_max: usize) -> usize {
    (bytes_max / 4).max(CALLER_MIN).min(bytes_max)
}

/// The longest body that can ever be admitted within these bounds.
pub(crate) fn admitted_bytes_max(bytes_max: usize, caller_bytes_max: Option<usize>) -> usize {
    let Limits { all_admitted, caller_admitted, .. } = Limits::new(bytes_max, caller_bytes_max);
    all_admitted.min(caller_admitted)
}

impl CallerCounters {
    fn new() -> Self {
        let row = || std::iter::repeat_with(AtomicUsize::default).take(COUNTERS).collect();
        Self { rows: [row(), row()], hashed_by: RandomState::new() }
    }

    fn places(&self, caller: &Caller) -> Places {
        let [a, b, c, d, ..] = self.hashed_by.hash_one(caller.as_str()).to_le_bytes();
        Places([u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])])
    }

    fn of(&self, places: Places) -> impl Iterator<Item = &AtomicUsize> {
        self.rows.iter().zip(places.0).filter_map(|(row, place)| row.get(usize::from(place) % COUNTERS))
    }

    /// What a caller holds, or more, if others have its counters too.
    fn held(&self, places: Places) -> usize {
        self.of(places).map(|counter| counter.load(Ordering::SeqCst)).min().unwrap_or(0)
    }

    fn add(&self, places: Places, bytes: usize) {
        for counter in self.of(places) {
            counter.fetch_add(bytes, Ordering::SeqCst);
        }
    }

    fn subtract(&self, places: Places, bytes: usize) {
        for counter in self.of(places) {
            counter.fetch_sub(bytes, Ordering::SeqCst);
        }
    }
}

impl Reserved {
    /// The same reservation for the response of a run that was granted: it has priority over admissions.
    pub(crate) fn granted(mut self) -> Self {
        self.purpose = Purpose::Granted;
        self
    }

    /// Uses more bytes, and reserves them if they are not reserved yet.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let used = self.used.saturating_add(bytes);
        self.reserve(used.saturating_sub(self.bytes))?;
        self.used = used;
        Ok(())
    }

    /// Like [`take`](Self::take); for a run that was granted, waits a while for room, if there can be any.
    pub(crate) async fn take_in_time(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let full = match self.take(bytes) {
            Ok(()) => return Ok(()),
            Err(full) => full,
        };
        let Some(budget) = self.budget.clone() else { return Err(full) };
        let can_fit = self.used.saturating_add(bytes) <= budget.limits.caller;
        if self.purpose == Purpose::Admission || !can_fit {
            return Err(full);
        }
        let _waiting = Waiting::start(&budget);
        let found_room = async {
            loop {
                let mut given_back = std::pin::pin!(budget.room.notified());
                given_back.as_mut().enable();
                if self.take(bytes).is_ok() {
                    return;
                }
                given_back.await;
            }
        };
        timeout(WAIT_FOR_ROOM, found_room).await.map_err(|_| full)
    }

    /// The bytes, which are counted until the last reference to them is gone. Few of them are no longer counted.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        if bytes.len() <= UNCOUNTED_MAX { bytes } else { self.attach_always(bytes) }
    }

    /// The bytes, which are counted until the last reference to them is gone, however few they are.
    pub(crate) fn attach_always(self, bytes: Bytes) -> Bytes {
        if self.budget.is_none() {
            return bytes;
        }
        Bytes::from_owner(Counted { bytes, _reserved: self })
    }

    /// A part of what is reserved, as a reservation of its own, for bytes that are not in use yet.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.used = self.used.min(self.bytes);
        Self { budget: self.budget.clone(), places: self.places, purpose: self.purpose, bytes, used: 0 }
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if let (Some(budget), 1..) = (&self.budget, bytes) {
            budget.take(self.places, self.purpose, bytes)?;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let (Some(budget), 1..) = (&self.budget, self.bytes) {
            budget.give_back(self.places, self.bytes);
        }
    }
}

/// Bytes, and the reservation that they are counted by.
struct Counted {
    bytes: Bytes,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A run that waits for room.
struct Waiting<'a>(&'a MemoryBudget);

impl<'a> Waiting<'a> {
    fn start(budget: &'a MemoryBudget) -> Self {
        budget.waiting.fetch_add(1, Ordering::SeqCst);
        Self(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
