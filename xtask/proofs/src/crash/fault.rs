//! What a store did wrong, and how often.

use std::fmt;
use std::time::Duration;

use crate::progress::Stopwatch;

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) what: String,
    /// When what was broken had been heard, if it had.
    pub(super) heard: Option<Stopwatch>,
}

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What was acknowledged is not there.
    Lost,
    /// What was over has come back in an older state.
    Returned,
    /// Two may have run where one was allowed to.
    Doubled,
    /// Something is there that nobody wrote.
    Corrupt,
    /// The folder could not be opened.
    Refused,
    /// The victim ended by itself, hung, or was answered as nobody should be.
    Wrong,
}

impl Fault {
    pub(super) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), heard: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            Kind::Lost => "lost",
            Kind::Returned => "returned",
            Kind::Doubled => "doubled",
            Kind::Corrupt => "corrupt",
            Kind::Refused => "failed open",
            Kind::Wrong => "wrong",
        };
        write!(f, "{word}: {}", self.what)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledgements: u64,
    pub(super) opens: u64,
    pub(super) longest_open: Duration,
    pub(super) records_most: u64,
    pub(super) faults: Vec<Fault>,
}

impl Tally {
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.faults.iter().filter(|fault| fault.kind == kind).count()
    }

    pub(super) fn opened(&mut self, took: Duration) {
        self.opens += 1;
        self.longest_open = self.longest_open.max(took);
    }

    /// Adds what was found elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.acknowledgements += other.acknowledgements;
        self.opens += other.opens;
        self.longest_open = self.longest_open.max(other.longest_open);
        self.records_most = self.records_most.max(other.records_most);
        self.faults.extend(other.faults);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} acknowledgements, {} lost, {} returned, {} doubled, {} corrupt, {} otherwise wrong, {} failed opens of {}, \
             longest open {} ms, at most {} records",
            self.acknowledgements,
            self.count(Kind::Lost),
            self.count(Kind::Returned),
            self.count(Kind::Doubled),
            self.count(Kind::Corrupt),
            self.count(Kind::Wrong),
            self.count(Kind::Refused),
            self.opens,
            self.longest_open.as_millis(),
            self.records_most,
        )
    }
}
