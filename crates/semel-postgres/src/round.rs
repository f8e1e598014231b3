//! A batch of swaps on its way: which are still to be asked, and what the others were told.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Swap, SwapReply};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio_postgres::Row;

use crate::told::Told;

/// How often a swap that lost a race is asked again. Each time somebody else wrote the same record within
/// milliseconds.
const RACES_MAX: usize = 64;

/// Swaps in the order of their ids, so that batches of several processes wait for one another in one order. A
/// statement may hold an id once; what a batch holds twice is answered by what the first was told, or goes with a later
/// round.
pub(crate) struct Batch {
    replies: Vec<Option<SwapReply>>,
    /// What this round asks: its swaps, and where each has its place among the replies.
    round: Vec<Swap>,
    places: Vec<usize>,
    /// What later rounds ask.
    later: Vec<(usize, Swap)>,
    now: Timestamp,
    races: usize,
    is_first: bool,
}

impl Batch {
    pub(crate) fn new(swaps: Vec<Swap>) -> Self {
        let replies = swaps.iter().map(|_| None).collect();
        Self {
            replies,
            round: Vec::new(),
            places: Vec::new(),
            later: swaps.into_iter().enumerate().collect(),
            now: Timestamp::default(),
            races: 0,
            is_first: true,
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.round.is_empty() && self.later.is_empty()
    }

    /// The swaps of this round.
    pub(crate) fn round(&self) -> &[Swap] {
        &self.round
    }

    /// Makes the next round, and says whether there is one.
    pub(crate) fn go_on(&mut self) -> Result<bool> {
        let mut left: Vec<_> =
            self.places.drain(..).zip(self.round.drain(..)).chain(self.later.drain(..)).collect();
        if left.is_empty() {
            return Ok(false);
        }
        if self.races > RACES_MAX {
            let error =
                Error::new(ErrorKind::Unavailable, "a record is written by others all the time; ask again");
            return Err(self.after_others(error));
        }
        left.sort_by_key(|(place, swap)| (swap.id(), *place));
        let mut last: Option<RecordId> = None;
        for (place, swap) in left {
            if last.replace(swap.id()) == Some(swap.id()) {
                self.later.push((place, swap));
            } else {
                self.places.push(place);
                self.round.push(swap);
            }
        }
        Ok(true)
    }

    /// Takes in what the server said to this round. What it said nothing to is asked again.
    pub(crate) fn hear(&mut self, rows: &[Row]) -> Result<()> {
        self.is_first = false;
        let mut told: Vec<Option<Told>> = self.round.iter().map(|_| None).collect();
        for row in rows {
            let answered = Told::read(row).map_err(|error| self.unread(error))?;
            self.now = self.now.max(answered.now);
            let at = self.round.binary_search_by_key(&answered.id, Swap::id);
            if let Some(slot) = at.ok().and_then(|at| told.get_mut(at)) {
                *slot = Some(answered);
            }
        }
        let mut known = BTreeMap::new();
        let mut lost_race = Vec::new();
        let asked = self.places.drain(..).zip(self.round.drain(..));
        for ((place, swap), told) in asked.zip(told) {
            let Some(told) = told else {
                lost_race.push((place, swap));
                continue;
            };
            let (id, reply) = (told.id, told.reply(swap));
            if !self.later.is_empty() {
                known.insert(id, current(&reply));
            }
            if let Some(slot) = self.replies.get_mut(place) {
                *slot = Some(reply);
            }
        }
        self.races = self.races.saturating_add(usize::from(!lost_race.is_empty()));
        self.answer_alike(&known);
        self.later.extend(lost_race);
        Ok(())
    }

    /// Answers swaps of records that this round has shown: many callers of one key often ride together, and all but one
    /// of them are stale by then. Only what could still win is asked in a later round.
    fn answer_alike(&mut self, known: &BTreeMap<RecordId, Option<Arc<Record>>>) {
        for (place, swap) in std::mem::take(&mut self.later) {
            let stale = known
                .get(&swap.id())
                .filter(|found| found.as_ref().map(|record| record.version) != swap.expected);
            match (stale, self.replies.get_mut(place)) {
                (Some(found), Some(slot)) => *slot = Some(SwapReply::Stale(found.clone())),
                _ => self.later.push((place, swap)),
            }
        }
    }

    /// An answer that cannot be read. It says nothing of the others, which may well have been swapped.
    fn unread(&self, error: Error) -> Error {
        if self.replies.len() == 1 {
            return error;
        }
        let message = "one of these swaps was answered with what cannot be read; ask again, one by one";
        Error::new(ErrorKind::Unknown, message).caused_by(error)
    }

    /// An error of a later round: what the rounds before it wrote stays written.
    pub(crate) fn after_others(&self, error: Error) -> Error {
        if self.is_first || error.kind() == ErrorKind::Unknown {
            return error;
        }
        Error::new(
            ErrorKind::Unknown,
            "a part of the batch was not answered; ask again with the same permits",
        )
        .caused_by(error)
    }

    pub(crate) fn answer(self) -> Result<Answer<Vec<SwapReply>>> {
        let value: Option<Vec<_>> = self.replies.into_iter().collect();
        let value =
            value.ok_or_else(|| Error::new(ErrorKind::Unknown, "a swap was not answered; ask again"))?;
        Ok(Answer { now: self.now, value })
    }
}

/// The record as an answer shows it.
fn current(reply: &SwapReply) -> Option<Arc<Record>> {
    match reply {
        SwapReply::Swapped(record) => Some(Arc::clone(record)),
        SwapReply::Stale(found) => found.clone(),
        SwapReply::Full => None,
    }
}
