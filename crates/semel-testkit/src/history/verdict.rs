//! An order, or why there is none.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use semel::machine::claim::{Claimed, Recorded};
use semel::{Error, ErrorKind};

use super::recorder::{Event, Told};

/// What a history shows. Events are named by their place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In this order the machine gives every answer. Lost replies that are not in it took no effect.
    Linearizable {
        /// One such order.
        order: Vec<usize>,
    },
    /// There is no such order.
    Violation {
        /// The longest beginning of an order that was found.
        prefix: Vec<usize>,
        /// What stands in the way of each event that could come next, in words for people.
        explanation: String,
    },
    /// The search was given up; look at a shorter history.
    Undecided {
        /// How many states were looked at.
        states: usize,
        /// How far it came, in words for people.
        explanation: String,
    },
}

impl Verdict {
    /// Whether an order was found.
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Self::Linearizable { .. })
    }

    /// Whether there is none.
    pub fn is_violation(&self) -> bool {
        matches!(self, Self::Violation { .. })
    }
}

/// What came of a history of many clients.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What the clients' asks came from.
    pub seed: u64,
    /// How many keys were asked for.
    pub keys: usize,
    /// How many answers were judged.
    pub answered: usize,
    /// How many replies were lost: each may have taken effect, or not.
    pub lost: usize,
    /// How many asks the store refused as unavailable, so that nothing happened.
    pub unavailable: usize,
    /// How many answers were on their way at the same time as another of the same key.
    pub overlapping: usize,
    /// How many runs were granted beyond the first of a record.
    pub reruns: usize,
    /// How often each answer was given.
    pub told: BTreeMap<&'static str, usize>,
    /// Why no order explains what was told of a key, one text a key.
    pub violations: Vec<String>,
    /// How far the search came for a key that it was given up for.
    pub undecided: Vec<String>,
    /// What no client should ever be told.
    pub errors: Vec<String>,
    /// How long the clients took.
    pub ran_for: Duration,
    /// How long it took to judge.
    pub judged_for: Duration,
}

impl Report {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Whether every key's answers have an order that explains them, and nothing else went wrong.
    pub fn is_linearizable(&self) -> bool {
        self.violations.is_empty() && self.undecided.is_empty() && self.errors.is_empty()
    }

    /// Whether some key's answers have none.
    pub fn is_violation(&self) -> bool {
        !self.violations.is_empty()
    }

    pub(super) fn failed(mut self, why: String) -> Self {
        self.errors.push(why);
        self
    }

    pub(super) fn refused(&mut self, error: &Error) {
        match error.kind() {
            // Written down as an event without an answer.
            ErrorKind::Unknown => {}
            ErrorKind::Unavailable => self.unavailable += 1,
            ErrorKind::Invalid
            | ErrorKind::Lost
            | ErrorKind::Full
            | ErrorKind::Corrupt
            | ErrorKind::Newer
            | _ => self.errors.push(format!("{error:?}")),
        }
    }

    pub(super) fn add(&mut self, events: &[Event], verdict: Verdict) {
        self.keys += 1;
        for event in events {
            let Some(answer) = &event.answer else {
                self.lost += 1;
                continue;
            };
            self.answered += 1;
            self.overlapping += usize::from(events.iter().any(|other| overlap(event, other)));
            self.reruns += usize::from(answer.seen.attempt.is_some_and(|attempt| attempt > 1));
            *self.told.entry(word(answer.told)).or_default() += 1;
        }
        match verdict {
            Verdict::Linearizable { .. } => {}
            Verdict::Violation { explanation, .. } => self.violations.push(explanation),
            Verdict::Undecided { states, explanation } => {
                self.undecided.push(format!("given up after {states} states: {explanation}"));
            }
        }
    }
}

fn overlap(a: &Event, b: &Event) -> bool {
    a.invoked_at != b.invoked_at && a.invoked_at < b.returned_at && b.invoked_at < a.returned_at
}

fn word(told: Told) -> &'static str {
    match told {
        Told::Claimed(claimed) | Told::Recorded(Recorded::Refused(claimed)) => match claimed {
            Claimed::Run => "run",
            Claimed::Replay => "replay",
            Claimed::Busy { .. } => "busy",
            Claimed::Mismatch => "mismatch",
            Claimed::Held => "held",
            Claimed::Probe => "probe",
        },
        Told::Recorded(Recorded::Recorded) => "recorded",
        Told::Completed(_) => "complete",
        Told::Released(_) => "release",
        Told::Renewed(_) => "renew",
        Told::Resolved(_) => "resolve",
        Told::Got(Some(_)) => "got",
        Told::Got(None) => "got nothing",
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} answers of {} keys in {:?}, judged in {:?}; {} overlapped, {} reruns, {} lost, {} unavailable; {:?}",
            self.seed,
            self.answered,
            self.keys,
            self.ran_for,
            self.judged_for,
            self.overlapping,
            self.reruns,
            self.lost,
            self.unavailable,
            self.told
        )?;
        for (what, texts) in
            [("violation", &self.violations), ("undecided", &self.undecided), ("error", &self.errors)]
        {
            for text in texts {
                write!(f, "\n{what}: {text}")?;
            }
        }
        Ok(())
    }
}
