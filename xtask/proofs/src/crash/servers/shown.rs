//! What the clients of a campaign were shown: outcomes, grants and fences, and how long each ask took.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use semel::record::PermitId;
use semel::{Error, ErrorKind};

use crate::crash::fault::{Fault, Kind};
use crate::progress::Stopwatch;

/// What is promised about grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// A key is granted once, and its outcome never changes.
    RunsOnce,
    /// Keys are granted again and again, also by two servers at once: only the fences must never repeat.
    FencesOnly,
}

/// Everything that any client was shown.
pub(super) struct Shown {
    promise: Promise,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Facts {
    keys: HashMap<String, KeyFacts>,
    /// The key that each fence was given for.
    fences: HashMap<u64, String>,
    acknowledgements: u64,
    /// Asks that failed, by what the error says.
    failures: BTreeMap<String, u64>,
    longest_ask: Duration,
    /// When the last acknowledgement came, and the longest time without any.
    last: Option<Stopwatch>,
    longest_gap: Duration,
    faults: Vec<Fault>,
}

#[derive(Clone, Debug, Default)]
struct KeyFacts {
    permit: Option<PermitId>,
    fence: u64,
    outcome: Option<ShownOutcome>,
}

/// An outcome that a client was shown, as done or as a replay.
#[derive(Clone, Debug)]
pub(super) struct ShownOutcome {
    pub(super) bytes: Vec<u8>,
    /// When it was shown for the first time.
    pub(super) at: Stopwatch,
}

impl Shown {
    pub(super) fn new(promise: Promise) -> Self {
        Self { promise, facts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client may run.
    pub(super) fn granted(&self, name: &str, permit: PermitId, fence: u64) {
        let mut facts = self.lock();
        facts.acknowledge();
        let known = facts.keys.get(name).cloned().unwrap_or_default();
        let is_resumed = known.permit == Some(permit) && known.fence == fence;
        if let Some(other) = facts.fences.insert(fence, name.to_owned())
            && !is_resumed
        {
            facts.fault(Kind::Doubled, format!("the fence {fence} of {name} was given before, for {other}"));
        }
        match self.promise {
            Promise::RunsOnce if known.outcome.is_some() => {
                facts.fault(Kind::Doubled, format!("{name} was granted after its outcome was shown"));
            }
            Promise::RunsOnce if known.permit.is_some_and(|other| other != permit) => {
                facts.fault(Kind::Doubled, format!("{name} was granted to a second permit, fence {fence}"));
            }
            Promise::RunsOnce | Promise::FencesOnly => {}
        }
        facts.keys.entry(name.to_owned()).or_default().permit = Some(permit);
        facts.keys.entry(name.to_owned()).or_default().fence = fence;
    }

    /// One caller is granted one key again: its fence must be greater than the one that this caller had before.
    pub(super) fn granted_again(&self, name: &str, before: u64, fence: u64) {
        if fence <= before {
            let what = format!("{name}: a caller was given the fence {fence} after {before}");
            self.lock().fault(Kind::Returned, what);
        }
    }

    /// A client was shown this outcome.
    pub(super) fn outcome(&self, name: &str, bytes: &[u8]) {
        let mut facts = self.lock();
        facts.acknowledge();
        let known = facts.keys.entry(name.to_owned()).or_default();
        let is_other = known.outcome.as_ref().is_some_and(|outcome| outcome.bytes != bytes);
        if is_other {
            facts.fault(Kind::Corrupt, format!("{name} was shown with two outcomes"));
        } else if known.outcome.is_none() {
            known.outcome = Some(ShownOutcome { bytes: bytes.to_vec(), at: Stopwatch::start() });
        }
    }

    /// Something else was acknowledged.
    pub(super) fn acknowledged(&self) {
        self.lock().acknowledge();
    }

    /// An ask came back, or was found still under way, after so long.
    pub(super) fn took(&self, span: Duration) {
        let mut facts = self.lock();
        facts.longest_ask = facts.longest_ask.max(span);
    }

    /// An ask failed. What no outage explains is a fault.
    pub(super) fn failed(&self, what: &str, error: &Error) {
        let mut facts = self.lock();
        *facts.failures.entry(format!("{:?}", error.kind())).or_default() += 1;
        if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown | ErrorKind::Lost) {
            facts.fault(Kind::Wrong, format!("{what}: {error:?}"));
        }
    }

    pub(super) fn fault(&self, kind: Kind, what: String) {
        self.lock().fault(kind, what);
    }

    /// Every outcome that was shown so far. They are forgotten here: the caller judges them.
    pub(super) fn take_outcomes(&self) -> Vec<(String, ShownOutcome)> {
        let keys = std::mem::take(&mut self.lock().keys);
        keys.into_iter().filter_map(|(name, facts)| Some((name, facts.outcome?))).collect()
    }

    pub(super) fn acknowledgements(&self) -> u64 {
        self.lock().acknowledgements
    }

    /// The longest ask since this was asked last.
    pub(super) fn take_longest_ask(&self) -> Duration {
        std::mem::take(&mut self.lock().longest_ask)
    }

    /// The longest time without an acknowledgement since this was asked last.
    pub(super) fn take_longest_gap(&self) -> Duration {
        let mut facts = self.lock();
        let now = facts.last.map_or(Duration::ZERO, Stopwatch::elapsed);
        std::mem::take(&mut facts.longest_gap).max(now)
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        self.lock().faults.clone()
    }

    pub(super) fn count(&self, kind: Kind) -> usize {
        self.lock().faults.iter().filter(|fault| fault.kind == kind).count()
    }
}

impl Facts {
    fn acknowledge(&mut self) {
        self.acknowledgements += 1;
        let gap = self.last.replace(Stopwatch::start()).map_or(Duration::ZERO, Stopwatch::elapsed);
        self.longest_gap = self.longest_gap.max(gap);
    }

    fn fault(&mut self, kind: Kind, what: String) {
        self.faults.push(Fault::new(kind, what));
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.lock();
        let count = |kind| facts.faults.iter().filter(|fault| fault.kind == kind).count();
        write!(
            f,
            "{} acknowledgements, {} lost, {} doubled, {} fences backwards, {} otherwise wrong; asks that failed: {:?}",
            facts.acknowledgements,
            count(Kind::Lost),
            count(Kind::Doubled),
            count(Kind::Returned),
            count(Kind::Corrupt) + count(Kind::Wrong),
            facts.failures,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(shown: &Shown) -> Vec<Kind> {
        shown.faults().iter().map(|fault| fault.kind).collect()
    }

    fn permit(number: u128) -> PermitId {
        PermitId::new(number)
    }

    #[test]
    fn one_run_with_one_outcome_has_no_fault() {
        let shown = Shown::new(Promise::RunsOnce);
        shown.granted("a", permit(1), 5);
        shown.granted("a", permit(1), 5);
        shown.outcome("a", b"x");
        shown.outcome("a", b"x");
        assert_eq!(kinds(&shown), []);
        assert_eq!(shown.take_outcomes().len(), 1);
        assert!(shown.take_outcomes().is_empty());
    }

    #[test]
    fn a_second_run_is_found_before_and_after_the_outcome() {
        let shown = Shown::new(Promise::RunsOnce);
        shown.granted("a", permit(1), 5);
        shown.granted("a", permit(2), 6);
        assert_eq!(kinds(&shown), [Kind::Doubled]);
        let shown = Shown::new(Promise::RunsOnce);
        shown.granted("a", permit(1), 5);
        shown.outcome("a", b"x");
        shown.granted("a", permit(1), 6);
        assert_eq!(kinds(&shown), [Kind::Doubled]);
    }

    #[test]
    fn a_fence_that_repeats_or_goes_back_is_found_whatever_the_key() {
        let shown = Shown::new(Promise::FencesOnly);
        shown.granted("a", permit(1), 5);
        shown.granted("b", permit(2), 6);
        shown.granted("a", permit(3), 7);
        shown.granted_again("a", 5, 7);
        assert_eq!(kinds(&shown), []);
        shown.granted("c", permit(4), 6);
        shown.granted_again("a", 7, 7);
        assert_eq!(kinds(&shown), [Kind::Doubled, Kind::Returned]);
    }

    #[test]
    fn an_outcome_that_changes_and_an_error_that_no_outage_explains_are_found() {
        let shown = Shown::new(Promise::RunsOnce);
        shown.outcome("a", b"x");
        shown.outcome("a", b"y");
        shown.failed("claim", &Error::new(ErrorKind::Unknown, "lost"));
        shown.failed("claim", &Error::new(ErrorKind::Invalid, "refused"));
        assert_eq!(kinds(&shown), [Kind::Corrupt, Kind::Wrong]);
    }
}
