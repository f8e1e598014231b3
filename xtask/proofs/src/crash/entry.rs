//! What is known of one key from the lines so far, and which states of its record that allows.

use super::fault::Kind;
use super::line::{Found, State};
use crate::progress::Stopwatch;

/// How far the clocks of two victims may be apart, in microseconds. A retention that is over by less is not held against
/// the store, either way.
const SLACK_MICROS: u64 = 50_000;

/// How long after its retention a key that nobody asks for again is forgotten, in microseconds.
const FORGET_AFTER_MICROS: u64 = 1_000_000;

/// What is known of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The newest grant that was acknowledged; 0 for none.
    pub(super) fence: u64,
    pub(super) attempt: u32,
    pub(super) permit: u128,
    /// How its run was asked to end, if it was.
    pub(super) end: Option<End>,
    /// Whether that was acknowledged.
    pub(super) is_ended: bool,
    /// Claims without an answer, and what the newest grant was when they were made.
    pub(super) claims: Vec<(u128, u64)>,
    /// When the newest acknowledgement was heard.
    pub(super) heard: Option<Stopwatch>,
}

/// How a run was asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// `None` for a release.
    pub(super) outcome: Option<String>,
    /// Its retention is over at this moment at the earliest.
    pub(super) kept_until: u64,
}

impl Entry {
    /// Whether the retention of its last run may be over.
    pub(super) fn may_be_gone(&self, now: u64) -> bool {
        self.fence == 0
            || self.end.as_ref().is_some_and(|end| now.saturating_add(SLACK_MICROS) >= end.kept_until)
    }

    /// Whether nothing that was said about it matters any more, a while after its retention.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.claims.is_empty()
            && (self.fence == 0
                || self
                    .end
                    .as_ref()
                    .is_some_and(|end| end.kept_until.saturating_add(FORGET_AFTER_MICROS) < now))
    }

    /// Whether another run may have been granted by now.
    pub(super) fn may_be_passed(&self, now: u64) -> bool {
        self.may_be_gone(now) || self.end.as_ref().is_some_and(|end| end.outcome.is_none())
    }

    /// What is wrong with finding this, if anything.
    pub(super) fn judge(&self, found: Option<&Found>, now: u64) -> Option<Kind> {
        let Some(found) = found else {
            return (!self.may_be_gone(now)).then_some(Kind::Lost);
        };
        // Older than what is known. If that need not be there any more, nothing would have been right, and this is not.
        let older = if self.may_be_gone(now) { Kind::Returned } else { Kind::Lost };
        if found.fence < self.fence {
            return Some(older);
        }
        if found.fence > self.fence {
            return self.judge_later(found, now);
        }
        let is_asked_for = match (&found.state, &self.end) {
            (State::Running(_), _) if self.is_ended => return Some(older),
            (State::Running(permit), _) => *permit == self.permit,
            (State::Done(outcome), Some(end)) => end.outcome.as_ref() == Some(outcome),
            (State::Released, Some(end)) => end.outcome.is_none(),
            (State::Done(_) | State::Released, None) => false,
        };
        (!is_asked_for || found.attempt != self.attempt).then_some(Kind::Corrupt)
    }

    /// A grant that nobody heard of: somebody must have asked for it, and the last run must have been over.
    fn judge_later(&self, found: &Found, now: u64) -> Option<Kind> {
        let State::Running(permit) = &found.state else { return Some(Kind::Corrupt) };
        if !self.claims.iter().any(|(claim, _)| claim == permit) {
            return Some(Kind::Corrupt);
        }
        (!self.may_be_passed(now)).then_some(Kind::Doubled)
    }

    /// What is known once this was found by an opening: whatever was unanswered has its answer.
    pub(super) fn adopt(&mut self, found: Option<&Found>, now: u64) {
        self.claims.clear();
        let Some(found) = found else {
            if !self.may_be_gone(now) {
                // It is lost, which is said once.
                self.end = Some(End { outcome: None, kept_until: now });
            }
            self.is_ended = true;
            return;
        };
        let known_until = self.end.take().filter(|_| found.fence == self.fence).map(|end| end.kept_until);
        let ended = |outcome| Some(End { outcome, kept_until: known_until.unwrap_or(now) });
        (self.fence, self.attempt) = (found.fence, found.attempt);
        (self.end, self.is_ended) = match &found.state {
            State::Running(permit) => {
                self.permit = *permit;
                (None, false)
            }
            State::Done(outcome) => (ended(Some(outcome.clone())), true),
            State::Released => (ended(None), true),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Entry {
        Entry { fence: 5, attempt: 1, permit: 7, ..Entry::default() }
    }

    fn ending(outcome: Option<&str>) -> Entry {
        let end = End { outcome: outcome.map(str::to_owned), kept_until: 1_000_000 };
        Entry { end: Some(end), ..running() }
    }

    fn found(fence: u64, state: State) -> Found {
        Found { fence, attempt: 1, state }
    }

    fn done() -> State {
        State::Done("o".into())
    }

    #[test]
    fn what_runs_is_there_and_runs() {
        assert_eq!(running().judge(Some(&found(5, State::Running(7))), 0), None);
        assert_eq!(running().judge(None, u64::MAX), Some(Kind::Lost));
        assert_eq!(running().judge(Some(&found(4, State::Running(7))), 0), Some(Kind::Lost));
        assert_eq!(running().judge(Some(&found(5, State::Running(8))), 0), Some(Kind::Corrupt));
        assert_eq!(running().judge(Some(&found(5, done())), 0), Some(Kind::Corrupt));
    }

    #[test]
    fn an_end_that_was_not_acknowledged_may_have_taken_or_not() {
        let asked = ending(Some("o"));
        assert_eq!(asked.judge(Some(&found(5, done())), 0), None);
        assert_eq!(asked.judge(Some(&found(5, State::Running(7))), 0), None);
        assert_eq!(asked.judge(Some(&found(5, State::Done("p".into()))), 0), Some(Kind::Corrupt));
        assert_eq!(ending(None).judge(Some(&found(5, State::Released)), 0), None);
    }

    #[test]
    fn an_acknowledged_end_stays_for_its_retention() {
        let ended = Entry { is_ended: true, ..ending(Some("o")) };
        assert_eq!(ended.judge(Some(&found(5, done())), 0), None);
        assert_eq!(ended.judge(Some(&found(5, State::Running(7))), 0), Some(Kind::Lost));
        assert_eq!(ended.judge(None, 0), Some(Kind::Lost));
        assert_eq!(ended.judge(None, 1_000_000), None);
    }

    #[test]
    fn what_is_past_its_retention_does_not_come_back_in_an_older_state() {
        let ended = Entry { is_ended: true, ..ending(Some("o")) };
        assert_eq!(ended.judge(Some(&found(5, State::Running(7))), 1_000_000), Some(Kind::Returned));
        assert_eq!(ended.judge(Some(&found(4, State::Released)), 1_000_000), Some(Kind::Returned));
    }

    #[test]
    fn a_grant_that_nobody_heard_of_needs_a_claim_and_a_free_key() {
        let later = found(9, State::Running(8));
        let claimed = |entry: Entry| Entry { claims: vec![(8, 5)], ..entry };
        assert_eq!(ending(None).judge(Some(&later), 0), Some(Kind::Corrupt));
        assert_eq!(claimed(ending(None)).judge(Some(&later), 0), None);
        assert_eq!(claimed(running()).judge(Some(&later), 0), Some(Kind::Doubled));
        assert_eq!(claimed(ending(Some("o"))).judge(Some(&later), 0), Some(Kind::Doubled));
        assert_eq!(claimed(ending(Some("o"))).judge(Some(&later), 1_000_000), None);
        assert_eq!(claimed(Entry::default()).judge(Some(&later), 0), None);
    }

    #[test]
    fn what_an_opening_showed_is_a_promise_too() {
        let mut entry = ending(Some("o"));
        entry.adopt(Some(&found(5, done())), 0);
        assert_eq!(entry.judge(Some(&found(5, State::Running(7))), 0), Some(Kind::Lost));
        let mut entry = ending(Some("o"));
        entry.adopt(Some(&found(5, State::Running(7))), 0);
        assert_eq!(entry.judge(Some(&found(5, done())), 0), Some(Kind::Corrupt));
    }
}
