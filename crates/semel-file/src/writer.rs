//! The one writer: judges each swap against what is on disk and what the batch changes, writes and syncs the batch, and
//! then answers its callers.
//!
//! - [`requests`]: what callers ask for, and what they are answered. [`queue`]: where requests wait.
//! - [`batch`]: the effects of what is written together, and who waits for it.

mod batch;
pub(crate) mod queue;
pub(crate) mod requests;

use std::collections::VecDeque;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::Version;
use semel::store::{Swap, SwapReply};
use semel::{Error, ErrorKind, Result, codec};

use crate::format::field::large;
use crate::format::frame::{FOREVER, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, Head, IndexKey, Kind, index_key};
use crate::index::Entry;
use crate::index::entry::Kept;
pub(crate) use crate::log::appender::LogState;
use crate::log::appender::{Appender, NoSpace, SegmentRoom};
use crate::log::maintenance::Maintenance;
use crate::reader::Reader;
use crate::reclaimer::{Reclaim, Reclaimer};
use crate::sweeper::Sweeper;
use batch::WriteBatch;
use requests::{SwapAnswer, SwapRequest, Unread, WriterRequest, answer, refuse};

/// The one writer.
pub(crate) struct Writer {
    reader: Arc<Reader>,
    log: Appender,
    batch: WriteBatch,
    reclaim: Reclaimer,
    sweep: Sweeper,
    /// Requests that wait behind the small ones.
    large: VecDeque<SwapRequest>,
    /// The record that is encoded, kept for its memory.
    encoded: Vec<u8>,
    is_closed: bool,
}

/// What becomes of one swap.
enum Judged {
    /// This reply, which speaks only of what is on disk.
    OnDisk(SwapReply),
    /// This reply, once the batch is on disk.
    InBatch(SwapReply),
    /// The caller has to read the record that stood in the way.
    Unread(Entry),
    /// The store has stopped.
    Stopped,
}

impl Writer {
    pub(crate) fn new(reader: Arc<Reader>, maintenance: Maintenance, state: LogState) -> Self {
        Self {
            log: Appender::new(Arc::clone(&reader), maintenance, state),
            reader,
            batch: WriteBatch::default(),
            reclaim: Reclaimer::new(),
            sweep: Sweeper::default(),
            large: VecDeque::new(),
            encoded: Vec::new(),
            is_closed: false,
        }
    }

    /// Whether there is something to do although no caller asks.
    pub(crate) fn is_busy(&self) -> bool {
        let can_reclaim = self.reader.health.check().is_ok() && self.reclaim.has_work(&self.log, &self.sweep);
        !self.large.is_empty() || !self.sweep.is_idle() || can_reclaim
    }

    /// Whether the next request is so near that sleeping would take longer.
    pub(crate) fn expects_more(&self) -> bool {
        self.sweep.expects_more()
    }

    /// Does what is asked, and a part of what no caller asks for.
    pub(crate) fn turn(&mut self, requests: &mut Vec<WriterRequest>) {
        self.log.check_maintenance();
        self.sweep.begin_turn();
        if !requests.is_empty() {
            self.reclaim.try_again();
        }
        self.reclaim_some();
        for request in requests.drain(..) {
            match request {
                WriterRequest::Swap(request) if request.is_large() => self.large.push_back(request),
                WriterRequest::Swap(request) => self.swap(request),
                WriterRequest::Sweep(request) => self.sweep.push(request),
            }
        }
        self.commit();
        if let Some(request) = self.large.pop_front() {
            self.swap(request);
            self.commit();
        }
        let usage = self.log.usage_mut();
        self.sweep.step(&self.reader, |entry| usage.remove(entry));
    }

    /// Stops cleanly: the log says that nothing before this place was cut off.
    pub(crate) fn close(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return self.reader.health.check();
        }
        while self.reader.health.check().is_ok() && (!self.large.is_empty() || !self.sweep.is_idle()) {
            self.turn(&mut Vec::new());
        }
        let stopped = self.reader.health.check();
        for request in self.large.drain(..) {
            refuse(request.caller, self.reader.health.unknown());
        }
        stopped?;
        // On a full disk there is no room for it; then the next opening is as after a crash, which is fine too.
        drop(self.append(&self.note(Kind::Closed, 0), &[], SegmentRoom::Whole));
        self.commit();
        self.log.close()
    }

    /// Takes in a record as it is, for a copy of another store.
    pub(crate) fn copy(&mut self, head: &Head, body: &[u8]) -> Result<()> {
        match self.append(head, body, SegmentRoom::Whole) {
            Ok(entry) => {
                // At once: a copy is not read before it is finished, and its hints must name it.
                if let Some(entry) = entry {
                    self.let_count(entry);
                }
                self.reader.health.check()
            }
            Err(NoSpace::Full(why)) => Err(no_space(&why)),
            Err(NoSpace::CommitFirst | NoSpace::Stopped) => Err(self.reader.health.unknown()),
        }
    }

    fn swap(&mut self, request: SwapRequest) {
        if let Err(error) = self.reader.health.check() {
            return refuse(request.caller, error);
        }
        let now = self.reader.clock.now();
        let mut value = SwapAnswer::default();
        let mut waits = false;
        for swap in request.batch {
            let key = swap.next.key().clone();
            let reply = match self.judge(swap, now) {
                Judged::OnDisk(reply) => reply,
                Judged::InBatch(reply) => {
                    waits = true;
                    reply
                }
                Judged::Unread(entry) => {
                    value.unread.push(Unread { reply: value.replies.len(), entry, key });
                    SwapReply::Stale(None)
                }
                // What the swaps before it wrote may be on disk.
                Judged::Stopped => return refuse(request.caller, self.reader.health.unknown()),
            };
            value.replies.push(reply);
        }
        if waits {
            self.batch.answer_later(request.caller, now, value);
        } else {
            answer(request.caller, now, value);
        }
    }

    /// Compares what the swap expects with what there is, and writes if they are the same.
    fn judge(&mut self, swap: Swap, now: Timestamp) -> Judged {
        let id = index_key(&swap.id());
        // What the batch writes hides what is on disk, also where its keep is over already.
        if let Some((entry, record)) = self.batch.written(&id) {
            let found = (entry.kept_at(now) != Kept::No).then_some(record);
            return if found.map(|record| record.version) == swap.expected {
                self.write(swap, now)
            } else {
                Judged::InBatch(SwapReply::Stale(found.cloned()))
            };
        }
        let found = match self.counts_at(&id, now) {
            Ok(found) => found,
            // Whether it is past its keep cannot be read, so neither can what there is to swap.
            Err(why) => return Judged::OnDisk(SwapReply::Damaged(why)),
        };
        match found {
            _ if found.map(|entry| Version::new(entry.version)) == swap.expected => {
                if found.is_none() && (self.log.has_no_room() || !self.reader.index.has_room_for(&id)) {
                    return Judged::OnDisk(self.log.refusal());
                }
                self.write(swap, now)
            }
            Some(entry) => Judged::Unread(entry),
            None => Judged::OnDisk(SwapReply::Stale(None)),
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

    /// Stamps the record and puts it into the batch. What cannot be stored is refused alone.
    fn write(&mut self, swap: Swap, now: Timestamp) -> Judged {
        let room = if swap.expected.is_none() { SegmentRoom::WithoutReserve } else { SegmentRoom::Whole };
        let version = Version::new(self.log.next_version());
        let kept_until = swap.keep.until(now).map_or(FOREVER, Timestamp::as_micros);
        let record = swap.next.stamp(version, now);
        let head = Head {
            kind: Kind::Record(record.state.kind()),
            version: version.get(),
            kept_until,
            moment: now,
            id: index_key(&record.key.id()),
        };
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        let fits = codec::encode_into(&mut encoded, &record).and_then(|()| fits(&encoded));
        let appended = fits.map(|()| self.append(&head, &encoded, room));
        self.encoded = encoded;
        match appended {
            Ok(Ok(entry)) => {
                self.log.use_version();
                if let Some(entry) = entry {
                    self.batch.write(entry, Arc::clone(&record));
                }
                Judged::InBatch(SwapReply::Swapped(record))
            }
            Ok(Err(NoSpace::Full(_))) if room == SegmentRoom::WithoutReserve => {
                Judged::OnDisk(self.log.refusal())
            }
            Ok(Err(NoSpace::Full(why))) => Judged::OnDisk(SwapReply::Refused(no_space(&why))),
            Ok(Err(NoSpace::CommitFirst | NoSpace::Stopped)) => Judged::Stopped,
            Err(why) => Judged::OnDisk(SwapReply::Refused(why)),
        }
    }

    /// Appends a frame, behind a commit if the batch or the segment is full.
    fn append(
        &mut self,
        head: &Head,
        body: &[u8],
        room: SegmentRoom,
    ) -> std::result::Result<Option<Entry>, NoSpace> {
        match self.log.append(head, body, room) {
            Err(NoSpace::CommitFirst) => {
                self.commit();
                self.reader.health.check().map_err(|_| NoSpace::Stopped)?;
                self.log.append(head, body, room)
            }
            appended => appended,
        }
    }

    /// Writes and syncs the batch, lets it count, and answers everyone who waits for it.
    fn commit(&mut self) {
        if self.log.commit().is_err() {
            let reader = &self.reader;
            return self.batch.fail(&|| reader.health.unknown());
        }
        let batch = std::mem::take(&mut self.batch);
        let moved = batch.moves().filter(|moved| self.reader.index.is_current(&moved.from));
        let moved: Vec<Entry> = moved.map(|moved| moved.to).collect();
        for entry in moved.into_iter().chain(batch.entries()) {
            self.let_count(entry);
        }
        if let Some(oldest) = batch.oldest_needed() {
            self.log.remove_before(oldest);
            self.reclaim.removed();
        }
        self.batch = batch;
        self.batch.finish();
    }

    fn let_count(&mut self, entry: Entry) {
        let replaced = self.reader.index.put(entry);
        if let Some(replaced) = &replaced {
            self.log.usage_mut().remove(replaced);
        }
        self.log.usage_mut().add(&entry);
    }

    /// Takes the next step of making the log smaller.
    fn reclaim_some(&mut self) {
        if self.reader.health.check().is_err() {
            return;
        }
        match self.reclaim.next(&mut self.log, &self.sweep, &self.reader) {
            None => {}
            // On disk before a segment is removed: a removal that a power cut undoes must not bring back what was
            // forgotten.
            Some(Reclaim::ForgetBefore(oldest)) => {
                match self.append(&self.note(Kind::Forget, u64::from(oldest)), &[], SegmentRoom::Whole) {
                    Ok(_) => self.batch.forget_before(oldest),
                    Err(_) => self.reclaim.had_no_space(),
                }
            }
            Some(Reclaim::Move { frames, until }) => {
                for frame in frames {
                    match self.append(&frame.head, &frame.body, SegmentRoom::Whole) {
                        Ok(Some(to)) => self.batch.move_record(frame.from, to),
                        Ok(None) => {}
                        Err(_) => return self.reclaim.had_no_space(),
                    }
                }
                self.reclaim.moved(until);
            }
        }
    }

    /// A frame of the log about itself.
    fn note(&self, kind: Kind, number: u64) -> Head {
        Head { kind, version: number, kept_until: 0, moment: self.reader.clock.now(), id: [0; 16] }
    }
}

#[cold]
fn no_space(why: &str) -> Error {
    let message =
        format!("{why}, and what was reserved is used up; nothing happened: mend it, and it is tried again");
    Error::new(ErrorKind::Unavailable, message)
}

/// Refuses what no segment could hold.
fn fits(encoded: &[u8]) -> Result<()> {
    if encoded.len() <= large(FRAME_BYTES_MAX.saturating_sub(FRAME_HEAD_BYTES)) {
        return Ok(());
    }
    let message = format!(
        "a record of {} bytes; the most is {FRAME_BYTES_MAX}: keep the outcome elsewhere and its address here",
        encoded.len()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}
