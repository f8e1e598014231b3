//! A batch of swaps on its way: which are still to be sent, and how the others were answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::store::{Answer, Caching, Loaded, Swap, SwapReplies, SwapReply, Swaps};
use semel::{Error, ErrorKind, RecordId, Result};
use smallvec::SmallVec;
use tokio_postgres::Row;

use crate::swap_answer::SwapAnswer;

/// How many rounds of a batch may lose a race, which is a swap without an answer: another caller wrote the record after
/// the statement's snapshot and before its write, so there is no record to hand back as stale. Only the store can send
/// such a swap again. Fewer than the 1,000 times that one ask starts over in `SwapLoop`, because every other swap of
/// the batch waits meanwhile; the ask whose batch fails here is refused as `Unavailable`, or asked again if some of the
/// batch was written.
const RACES_MAX: usize = 64;

/// Swaps in the order of their ids, so that batches of several processes wait for one another in one order. A
/// statement may hold an id once; what a batch holds twice is answered by what the first one found, or goes with a later
/// round.
pub(crate) struct Batch {
    replies: SmallVec<[Option<SwapReply>; 1]>,
    /// What this round asks: its swaps, and where each has its place among the replies.
    round: Vec<Swap>,
    places: Vec<usize>,
    /// What later rounds ask.
    later: Vec<(usize, Swap)>,
    /// Of the done records that were found, the transaction that wrote each.
    done_by: BTreeMap<RecordId, u32>,
    now: Timestamp,
    races: usize,
    is_first: bool,
}

impl Batch {
    /// The swaps to be sent. `refusal` says why new claims are refused now, if they are.
    pub(crate) fn new(swaps: Swaps, refusal: Option<&Error>) -> Self {
        let refused =
            |swap: &Swap| refusal.filter(|_| swap.next.grants_run()).cloned().map(SwapReply::Refused);
        let replies: SmallVec<[_; 1]> = swaps.iter().map(refused).collect();
        let later = swaps.into_iter().enumerate();
        let later = later.filter(|(place, _)| replies.get(*place).is_none_or(Option::is_none)).collect();
        Self {
            replies,
            round: Vec::new(),
            places: Vec::new(),
            later,
            done_by: BTreeMap::new(),
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

    /// Takes in what the server answered to this round. What it did not answer is asked again.
    pub(crate) fn hear(&mut self, rows: &[Row]) -> Result<()> {
        self.is_first = false;
        let mut answers: Vec<Option<SwapAnswer>> = self.round.iter().map(|_| None).collect();
        for row in rows {
            let answer = SwapAnswer::read(row).map_err(|error| self.after_others(error))?;
            self.now = self.now.max(answer.now);
            self.done_by.extend(answer.done_by.map(|transaction| (answer.id, transaction)));
            let at = self.round.binary_search_by_key(&answer.id, Swap::id);
            if let Some(slot) = at.ok().and_then(|at| answers.get_mut(at)) {
                *slot = Some(answer);
            }
        }
        let mut known = BTreeMap::new();
        let mut lost_race = Vec::new();
        let asked = self.places.drain(..).zip(self.round.drain(..));
        for ((place, swap), answer) in asked.zip(answers) {
            let Some(answer) = answer else {
                lost_race.push((place, swap));
                continue;
            };
            let (id, reply) = (answer.id, answer.reply(swap));
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
    fn answer_alike(&mut self, known: &BTreeMap<RecordId, Loaded>) {
        for (place, swap) in std::mem::take(&mut self.later) {
            let reply = known.get(&swap.id()).and_then(|found| alike(found, &swap));
            match (reply, self.replies.get_mut(place)) {
                (Some(reply), Some(slot)) => *slot = Some(reply),
                _ => self.later.push((place, swap)),
            }
        }
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

    /// The transactions that wrote the done records that replies show.
    pub(crate) fn shown_done(&self) -> Vec<u32> {
        self.done_by.values().copied().collect()
    }

    /// The replies of a batch of which nothing had to be sent.
    pub(crate) fn answer_at(mut self, now: Timestamp) -> Result<Answer<SwapReplies>> {
        self.now = now;
        self.answer(&Ok(()))
    }

    /// The replies. Done records are shown only if they are `confirmed`: on the synchronous standby, if there is one.
    pub(crate) fn answer(self, confirmed: &Result<()>) -> Result<Answer<SwapReplies>> {
        let Self { replies, done_by, now, .. } = self;
        let shown = |reply: SwapReply| match (&reply, confirmed) {
            (SwapReply::Stale(Some(found)), Err(why)) if done_by.contains_key(&found.key.id()) => {
                SwapReply::Refused(why.clone())
            }
            _ => reply,
        };
        let value: Option<SwapReplies> = replies.into_iter().map(|reply| reply.map(shown)).collect();
        let value =
            value.ok_or_else(|| Error::new(ErrorKind::Unknown, "a swap was not answered; ask again"))?;
        Ok(Answer::new(now, value).caching(Caching::Allowed))
    }
}

/// The record as a reply shows it.
fn current(reply: &SwapReply) -> Loaded {
    match reply {
        SwapReply::Swapped(record) => Ok(Some(Arc::clone(record))),
        SwapReply::Stale(found) => Ok(found.clone()),
        SwapReply::Full => Ok(None),
        SwapReply::Damaged(why) | SwapReply::Refused(why) => Err(why.clone()),
    }
}

/// The reply to a swap of a record that was just found like this; `None` if the swap could still win.
fn alike(found: &Loaded, swap: &Swap) -> Option<SwapReply> {
    match found {
        Ok(found) if found.as_ref().map(|record| record.version) != swap.expected => {
            Some(SwapReply::Stale(found.clone()))
        }
        // A row is there, so a swap that expects none cannot win.
        Err(why) if swap.expected.is_none() => Some(SwapReply::Damaged(why.clone())),
        Ok(_) | Err(_) => None,
    }
}
