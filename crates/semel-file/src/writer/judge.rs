//! From asks to answers: each swap is judged against what is on disk and what this run changes, the run is written and
//! synced, and then everybody is told.

use std::collections::VecDeque;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Record, Version};
use semel::store::{Swap, SwapReply};
use semel::{Error, ErrorKind, Result, codec};

use super::append::NoPlace;
use super::ask::{Ask, SwapAsk, SweepAsk, Told, answer, refuse};
use super::batch::WriteBatch;
use super::reclaim::Reclaiming;
use super::state::LogState;
use crate::format::field::large;
use crate::format::frame::{FOREVER, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, Head, IndexKey, Kind, index_key};
use crate::format::header::HEADER_BYTES;
use crate::index::Entry;
use crate::index::entry::Kept;
use crate::log::maintenance::Maintenance;
use crate::reader::Reader;

/// The one writer.
pub(crate) struct Writer {
    pub(super) reader: Arc<Reader>,
    pub(super) maintenance: Maintenance,
    pub(super) start: LogState,
    pub(super) run: WriteBatch,
    /// Where the move out of the oldest segment has come to.
    pub(super) moved_until: u32,
    pub(super) reclaiming: Reclaiming,
    /// For how many turns nothing is moved.
    pub(super) rest_turns: u32,
    /// What waits behind the small ones.
    large: VecDeque<SwapAsk>,
    pub(super) sweeps: VecDeque<SweepAsk>,
    body: Vec<u8>,
    is_closed: bool,
}

impl Writer {
    pub(crate) fn new(reader: Arc<Reader>, maintenance: Maintenance, start: LogState) -> Self {
        let mut writer = Self {
            reader,
            maintenance,
            start,
            run: WriteBatch::default(),
            moved_until: HEADER_BYTES,
            reclaiming: Reclaiming::Goes,
            rest_turns: 0,
            large: VecDeque::new(),
            sweeps: VecDeque::new(),
            body: Vec::new(),
            is_closed: false,
        };
        writer.begin_run();
        writer
    }

    /// Whether there is something to do although nobody asks.
    pub(crate) fn is_busy(&self) -> bool {
        !self.large.is_empty() || !self.sweeps.is_empty() || self.has_to_reclaim()
    }

    /// Does what is asked, and some of what nobody asks for.
    pub(crate) fn turn(&mut self, asks: &mut Vec<Ask>) {
        if let Some(why) = self.maintenance.failure() {
            self.reader.health.fail(why);
        }
        if !asks.is_empty() {
            self.try_reclaiming_again();
        }
        self.reclaim_some();
        for ask in asks.drain(..) {
            match ask {
                Ask::Swap(ask) if ask.is_large() => self.large.push_back(ask),
                Ask::Swap(ask) => self.swap(ask),
                Ask::Sweep(ask) => self.sweeps.push_back(ask),
            }
        }
        self.commit();
        if let Some(ask) = self.large.pop_front() {
            self.swap(ask);
            self.commit();
        }
        self.sweep_some();
    }

    /// Stops cleanly: the log says that nothing before this place was cut off.
    pub(crate) fn close(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return self.reader.health.check();
        }
        let mut nobody = Vec::new();
        while self.reader.health.check().is_ok() && (!self.large.is_empty() || !self.sweeps.is_empty()) {
            self.turn(&mut nobody);
        }
        let stopped = self.reader.health.check();
        for ask in self.large.drain(..) {
            refuse(ask.caller, self.reader.health.unknown());
        }
        stopped?;
        let moment = self.reader.clock.now();
        let closed = Head { kind: Kind::Closed, version: 0, kept_until: 0, moment, id: [0; 16] };
        // On a full disk there is no room for it; then the next opening is as after a crash, which is fine too.
        drop(self.push(&closed, &[]));
        self.commit();
        self.maintenance.stop();
        self.reader.health.check()
    }

    /// Takes in a record as it is, for a copy of another store.
    pub(crate) fn copy(&mut self, head: &Head, body: &[u8]) -> Result<()> {
        match self.push(head, body) {
            Ok(entry) => {
                // At once: nobody reads a copy before it is finished, and its hints must name it.
                if let Some(entry) = entry {
                    self.let_count(entry);
                }
                self.reader.health.check()
            }
            Err(NoPlace::Full(why)) => Err(no_place(&why)),
            Err(NoPlace::Stopped) => Err(self.reader.health.unknown()),
        }
    }

    fn swap(&mut self, ask: SwapAsk) {
        if let Err(error) = self.reader.health.check() {
            return refuse(ask.caller, error);
        }
        let now = self.reader.clock.now();
        let mut told = Vec::with_capacity(ask.batch.len());
        let mut waits = false;
        for swap in ask.batch {
            match self.swap_one(swap, now) {
                Ok((reply, on)) => {
                    told.push(reply);
                    waits |= on == On::Batch;
                }
                Err(error) if waits => return refuse(ask.caller, partly(&error)),
                Err(error) => return refuse(ask.caller, error),
            }
        }
        if waits {
            self.run.callers.push((ask.caller, now, told));
        } else {
            // It speaks only of what is on disk already.
            answer(ask.caller, now, told);
        }
    }

    fn swap_one(&mut self, swap: Swap, now: Timestamp) -> Result<(Told, On)> {
        let id = index_key(&swap.id());
        // What this run changed hides what is on disk, also where its keep is over already.
        let (found, on) = if let Some((entry, record)) = self.run.changed.get(&id) {
            let counts = entry.kept_at(now) != Kept::No;
            (counts.then(|| (entry.version, Told::Reply(stale(record)))), On::Batch)
        } else {
            let entry = match self.counts_at(&id, now) {
                Ok(entry) => entry,
                // Whether it is past its keep cannot be read, so neither can what there is to swap.
                Err(why) => return Ok((Told::Reply(SwapReply::Damaged(why)), On::Disk)),
            };
            let key = || swap.next.key().clone();
            (entry.map(|entry| (entry.version, Told::Found(entry, key()))), On::Disk)
        };
        let is_expected = found.as_ref().map(|(version, _)| Version::new(*version)) == swap.expected;
        match found {
            Some((_, told)) if !is_expected => Ok((told, on)),
            None if !is_expected => Ok((Told::Reply(SwapReply::Stale(None)), on)),
            None if self.maintenance.has_no_room() => Ok((Told::Reply(self.maintenance.refusal()), on)),
            Some(_) | None => self.write(swap, now),
        }
    }

    /// The entry of a record that counts now.
    fn counts_at(&self, id: &IndexKey, now: Timestamp) -> Result<Option<Entry>> {
        let Some(entry) = self.reader.index.get(id) else { return Ok(None) };
        let counts = match entry.kept_at(now) {
            Kept::Yes => true,
            Kept::No => false,
            Kept::Look => self.reader.kept_until(&entry)? > now.as_micros(),
        };
        Ok(counts.then_some(entry))
    }

    /// Puts the stamped record into the run.
    fn write(&mut self, swap: Swap, now: Timestamp) -> Result<(Told, On)> {
        let is_new = swap.expected.is_none();
        let version = Version::new(self.start.next_version);
        let kept_until = swap.keep.until(now).map_or(FOREVER, Timestamp::as_micros);
        let record = swap.next.stamp(version, now);
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let encoded = codec::encode_into(&mut body, &record).and_then(|()| fits(&body));
        let head = Head {
            kind: Kind::Record(record.state.kind()),
            version: version.get(),
            kept_until,
            moment: now,
            id: index_key(&record.key.id()),
        };
        let push = if is_new { Self::push_new } else { Self::push };
        let pushed = encoded.map(|()| push(self, &head, &body));
        self.body = body;
        match pushed? {
            Ok(entry) => {
                self.start.next_version = self.start.next_version.saturating_add(1);
                if let Some(entry) = entry {
                    self.run.changed.insert(head.id, (entry, Arc::clone(&record)));
                }
                Ok((Told::Reply(SwapReply::Swapped(record)), On::Batch))
            }
            Err(NoPlace::Full(_)) if is_new => Ok((Told::Reply(self.maintenance.refusal()), On::Disk)),
            Err(NoPlace::Full(why)) => Err(no_place(&why)),
            Err(NoPlace::Stopped) => Err(self.reader.health.unknown()),
        }
    }
}

/// What an answer speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// Only what is on disk for good.
    Disk,
    /// Something in this run.
    Batch,
}

fn stale(record: &Arc<Record>) -> SwapReply {
    SwapReply::Stale(Some(Arc::clone(record)))
}

#[cold]
fn no_place(why: &str) -> Error {
    let message =
        format!("{why}, and what was reserved is used up; nothing happened: mend it, and it is tried again");
    Error::new(ErrorKind::Unavailable, message)
}

/// The swaps before the one that failed are in a run, or even on disk.
#[cold]
fn partly(error: &Error) -> Error {
    Error::new(
        ErrorKind::Unknown,
        format!("other swaps of the batch may have happened; of this one: {error}"),
    )
}

/// Refuses what no segment could hold.
fn fits(body: &[u8]) -> Result<()> {
    if body.len() <= large(FRAME_BYTES_MAX.saturating_sub(FRAME_HEAD_BYTES)) {
        return Ok(());
    }
    let message = format!(
        "a record of {} bytes; the most is {FRAME_BYTES_MAX}: keep the outcome elsewhere and its address here",
        body.len()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}
