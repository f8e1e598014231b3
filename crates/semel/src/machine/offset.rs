//! How far a pipeline has read a stream: offsets that only move forward, and epochs that fence zombies.
//!
//! An offset is a done record that is kept for ever and written anew with every move.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ruling::Ruling;
use crate::clock::Timestamp;
use crate::key::Key;
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::{Lapse, RETENTION_MAX};
use crate::record::{Done, Duplicates, Grant, Mismatches, PermitId, Record, State, Version};

/// The kind of an outcome that is an offset.
pub const OFFSET_KIND: &str = "offset";

/// Where an event stands in its stream: a number that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u128);

impl Position {
    /// The position with this number.
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// The number itself.
    pub const fn get(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How far a stream has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// The last position that counts as read; `None` before the first.
    pub position: Option<Position>,
    /// The event there, if whoever committed said.
    pub last_event: Option<Box<str>>,
    /// How often somebody began to read the stream. Only the last of them may commit.
    pub epoch: u64,
    /// How many events its reader still had before it when it committed, over all that it reads; `None` if it did not know.
    pub lag: Option<u64>,
}

/// A move of an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Somebody begins to read: a new epoch, from where the stream was left.
    Take,
    /// Everything up to here is done.
    Commit {
        /// Under which epoch; `None` where the broker spreads a stream over many readers, and there are no epochs.
        epoch: Option<u64>,
        /// The last position that is done.
        position: Position,
        /// The event there.
        last_event: Option<Box<str>>,
        /// How many events the reader still has before it, if it knows: for people to see.
        lag: Option<u64>,
    },
    /// Somebody wants it read again from here, or skipped up to here. Whoever reads now is fenced.
    Rewind {
        /// The last position that counts as read; `None` to start over.
        to: Option<Position>,
    },
}

/// What became of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The offset as it now is.
    Moved(Offset),
    /// Nothing changed: somebody else reads now. The offset as it is.
    Fenced(Offset),
    /// Nothing changed: the offset is further on already.
    Behind(Offset),
    /// Nothing changed: the record under this key is no offset.
    NoOffset,
}

/// Decides a move. `permit_id` is minted by the caller, so that a move whose reply was lost is known again.
pub fn shift(
    found: Option<&Record>,
    key: &Key,
    permit_id: PermitId,
    wanted: &Move,
    now: Timestamp,
) -> Ruling<Moved> {
    let Some(record) = found else {
        let offset = moved(Offset::default(), wanted);
        let next = fresh(key, done(permit_id, &offset));
        return Ruling::write(Moved::Moved(offset), next, now);
    };
    let Some((offset, by)) = read_done(record) else { return Ruling::unchanged(Moved::NoOffset) };
    if by == permit_id {
        return Ruling::unchanged(Moved::Moved(offset));
    }
    match wanted {
        Move::Commit { epoch, .. } if epoch.unwrap_or_default() < offset.epoch => {
            Ruling::unchanged(Moved::Fenced(offset))
        }
        Move::Commit { position, .. } if offset.position.is_some_and(|at| at > *position) => {
            Ruling::unchanged(Moved::Behind(offset))
        }
        Move::Commit { position, .. } if offset.position == Some(*position) => {
            Ruling::unchanged(Moved::Moved(offset))
        }
        Move::Take | Move::Rewind { .. } | Move::Commit { .. } => {
            let offset = moved(offset, wanted);
            let next = record.in_state(done(permit_id, &offset));
            Ruling::write(Moved::Moved(offset), next, now)
        }
    }
}

/// The offset in a record, if that is what it keeps.
pub fn read(record: &Record) -> Option<Offset> {
    read_done(record).map(|(offset, _)| offset)
}

fn read_done(record: &Record) -> Option<(Offset, PermitId)> {
    let State::Done(done) = &record.state else { return None };
    Some((decode(&done.outcome)?, done.grant.permit_id))
}

fn moved(from: Offset, wanted: &Move) -> Offset {
    match wanted {
        Move::Take => Offset { epoch: from.epoch.saturating_add(1), ..from },
        Move::Commit { epoch, position, last_event, lag } => Offset {
            position: Some(*position),
            last_event: last_event.clone(),
            epoch: epoch.unwrap_or(from.epoch),
            lag: *lag,
        },
        // A stream that many share has no epochs, and gets none by this.
        Move::Rewind { to } => {
            let epoch = if from.epoch == 0 { 0 } else { from.epoch.saturating_add(1) };
            Offset { position: *to, last_event: None, epoch, lag: None }
        }
    }
}

fn done(permit_id: PermitId, offset: &Offset) -> State {
    State::Done(Done {
        grant: Grant { permit_id, ..Grant::forgotten(Timestamp::UNSTAMPED) },
        settled_at: Timestamp::UNSTAMPED,
        outcome: encode(offset),
    })
}

/// The record of an offset, or of a list, that was never written.
pub(super) fn fresh(key: &Key, state: State) -> Record {
    Record {
        key: key.clone(),
        fingerprint: None,
        label: None,
        state,
        attempt: 1,
        attempts_forgiven: 0,
        past_attempts: Vec::new(),
        lapse: Lapse::Rerun,
        retention: RETENTION_MAX,
        first_seen_at: Timestamp::UNSTAMPED,
        changed_at: Timestamp::UNSTAMPED,
        first_event: None,
        mismatches: Mismatches::default(),
        duplicates: Duplicates::default(),
        version: Version::UNSTAMPED,
    }
}

/// What is in an offset's bytes: JSON, because people look at it. The position is text: not every reader of JSON has
/// integers of 128 bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    position: Option<String>,
    last_event: Option<Box<str>>,
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
}

fn encode(offset: &Offset) -> Outcome {
    let written = Written {
        position: offset.position.map(|position| position.to_string()),
        last_event: offset.last_event.clone(),
        epoch: offset.epoch,
        lag: offset.lag,
    };
    // Text and numbers only: this cannot fail.
    let bytes = serde_json::to_vec(&written).unwrap_or_default();
    Outcome::new(OutcomeKind::from_word(OFFSET_KIND), bytes)
}

fn decode(outcome: &Outcome) -> Option<Offset> {
    if outcome.kind().as_str() != OFFSET_KIND {
        return None;
    }
    let Written { position, last_event, epoch, lag } = serde_json::from_slice(outcome.bytes()).ok()?;
    let position = match position {
        Some(digits) => Some(Position(digits.parse().ok()?)),
        None => None,
    };
    Some(Offset { position, last_event, epoch, lag })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    /// An offset that is moved as a store would keep it.
    struct Kept(Option<Record>, u128);

    impl Kept {
        fn shift(&mut self, wanted: &Move) -> Moved {
            self.1 = self.1.saturating_add(1);
            self.shift_as(self.1, wanted)
        }

        fn shift_as(&mut self, permit: u128, wanted: &Move) -> Moved {
            let key = Key::scoped(["orders"], "offset", "topic/0").unwrap();
            let ruling = shift(self.0.as_ref(), &key, PermitId::new(permit), wanted, NOW);
            if let Some(write) = ruling.write {
                let version = self.0.as_ref().map_or(1, |record| record.version.get().saturating_add(1));
                self.0 = Some(Record::clone(&write.next.stamp(Version::new(version), NOW)));
            }
            ruling.answer
        }
    }

    fn commit(epoch: u64, position: u128) -> Move {
        let last_event = Some(format!("e{position}").into());
        Move::Commit { epoch: Some(epoch), position: Position::new(position), last_event, lag: None }
    }

    fn at(moved: &Moved) -> (&'static str, Option<u128>, u64) {
        let (word, offset) = match moved {
            Moved::Moved(offset) => ("moved", offset),
            Moved::Fenced(offset) => ("fenced", offset),
            Moved::Behind(offset) => ("behind", offset),
            Moved::NoOffset => return ("no offset", None, 0),
        };
        (word, offset.position.map(Position::get), offset.epoch)
    }

    #[test]
    fn an_offset_moves_forward_only_and_only_for_its_last_reader() {
        let mut kept = Kept(None, 0);
        assert_eq!(at(&kept.shift(&Move::Take)), ("moved", None, 1));
        assert_eq!(at(&kept.shift(&commit(1, 0))), ("moved", Some(0), 1));
        assert_eq!(at(&kept.shift(&commit(1, 10))), ("moved", Some(10), 1));
        assert_eq!(at(&kept.shift(&commit(1, 10))), ("moved", Some(10), 1), "the same again is harmless");
        assert_eq!(at(&kept.shift(&commit(1, 9))), ("behind", Some(10), 1));
        assert_eq!(at(&kept.shift(&Move::Take)), ("moved", Some(10), 2));
        assert_eq!(at(&kept.shift(&commit(1, 11))), ("fenced", Some(10), 2));
        assert_eq!(at(&kept.shift(&commit(2, u128::MAX))), ("moved", Some(u128::MAX), 2));
    }

    #[test]
    fn a_rewind_goes_anywhere_and_fences_whoever_reads() {
        let mut kept = Kept(None, 0);
        kept.shift(&Move::Take);
        kept.shift(&commit(1, 10));
        assert_eq!(at(&kept.shift(&Move::Rewind { to: Some(Position::new(3)) })), ("moved", Some(3), 2));
        assert_eq!(at(&kept.shift(&commit(1, 11))), ("fenced", Some(3), 2));
        assert_eq!(at(&kept.shift(&Move::Rewind { to: None })), ("moved", None, 3));
    }

    #[test]
    fn a_move_whose_reply_was_lost_counts_once() {
        let mut kept = Kept(None, 0);
        assert_eq!(at(&kept.shift_as(7, &Move::Take)), ("moved", None, 1));
        assert_eq!(at(&kept.shift_as(7, &Move::Take)), ("moved", None, 1));
    }

    #[test]
    fn readers_without_epochs_only_move_forward() {
        let mut kept = Kept(None, 0);
        let shared = |position| Move::Commit {
            epoch: None,
            position: Position::new(position),
            last_event: None,
            lag: None,
        };
        assert_eq!(at(&kept.shift(&shared(5))), ("moved", Some(5), 0));
        assert_eq!(at(&kept.shift(&shared(4))), ("behind", Some(5), 0));
        assert_eq!(at(&kept.shift(&Move::Rewind { to: None })), ("moved", None, 0));
        assert_eq!(at(&kept.shift(&shared(5))), ("moved", Some(5), 0), "a rewind gives it no epoch");
        kept.shift(&Move::Take);
        assert_eq!(at(&kept.shift(&shared(6))), ("fenced", Some(5), 1), "somebody reads it alone now");
    }

    #[test]
    fn an_offset_is_kept_for_ever_with_all_that_it_says() {
        let mut kept = Kept(None, 0);
        for (at, lag) in [(3, None), (4, Some(0)), (5, Some(u64::MAX))] {
            let (epoch, position) = (Some(4), Position::new(at));
            kept.shift(&Move::Commit { epoch, position, last_event: Some("e3".into()), lag });
            let record = kept.0.clone().unwrap();
            assert_eq!(record.live_until(), None);
            let expected = Offset { position: Some(position), last_event: Some("e3".into()), epoch: 4, lag };
            assert_eq!(read(&record), Some(expected));
        }
    }

    #[test]
    fn another_record_is_no_offset_and_stays_as_it_is() {
        let mut kept = Kept(None, 0);
        kept.shift(&Move::Take);
        let record = kept.0.take().unwrap();
        for outcome in [
            Outcome::success("{}"),
            Outcome::new(OutcomeKind::from_word(OFFSET_KIND), "{\"position\":\"x\",\"epoch\":1}"),
        ] {
            let mut other = record.clone();
            if let State::Done(done) = &mut other.state {
                done.outcome = outcome;
            }
            kept.0 = Some(other.clone());
            assert_eq!(kept.shift(&commit(9, 9)), Moved::NoOffset);
            assert_eq!(kept.0, Some(other));
        }
    }
}
