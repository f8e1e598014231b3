//! What a caller is told. These are answers, not errors.

use std::sync::Arc;
use std::time::Duration;

use super::permit::Permit;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Outcome;
use crate::record::{Record, State};

/// What a claim is told.
#[derive(Debug)]
#[must_use = "only Run and Unprotected give the right to run"]
pub enum Decision {
    /// Run, then complete or release the permit.
    Run(Permit),
    /// The work is done: answer with the stored outcome.
    Replay(Replay),
    /// Another caller runs: ask again later, or wait.
    Busy(Busy),
    /// Another request was made under this key: refuse.
    Mismatch(Mismatch),
    /// Nobody may run until a person or a probe decides.
    Held(Held),
    /// The store does not answer and the policy says to run all the same: the work may run twice.
    Unprotected(Permit),
}

impl Decision {
    /// The word for this decision in logs, metrics and reports.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Replay(_) => "replay",
            Self::Busy(_) => "busy",
            Self::Mismatch(_) => "mismatch",
            Self::Held(_) => "held",
            Self::Unprotected(_) => "unprotected",
        }
    }
}

/// What `record_once` is told.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "handed out once; a box would be in the way of whoever matches on it"
)]
#[must_use = "only Recorded means that this call's outcome is the one that counts"]
pub enum RecordedOnce {
    /// The outcome is stored, and this call stored it.
    Recorded(Record),
    /// An outcome was stored before: this is it.
    Replay(Replay),
    /// A caller runs.
    Busy(Busy),
    /// Another request was made under this key.
    Mismatch(Mismatch),
    /// Nobody may run until a person or a probe decides.
    Held(Held),
}

/// The work is done.
#[derive(Clone, Debug)]
pub struct Replay {
    record: Arc<Record>,
    outcome: Outcome,
}

impl Replay {
    pub(super) fn new(record: Arc<Record>) -> Result<Self> {
        match record.outcome() {
            Some(outcome) => Ok(Self { outcome: outcome.clone(), record }),
            None => Err(out_of_step(&record)),
        }
    }

    /// What the run produced, byte for byte.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Until when the outcome is remembered, on the store's clock. It does not slide.
    pub fn remembered_until(&self) -> Option<Timestamp> {
        self.record.live_until()
    }

    /// The whole record.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// Another caller runs.
#[derive(Clone, Debug)]
pub struct Busy {
    record: Arc<Record>,
    owner: Arc<str>,
    since: Timestamp,
    retry_after: Duration,
}

impl Busy {
    pub(super) fn new(record: Arc<Record>, retry_after: Duration) -> Result<Self> {
        match &record.state {
            State::Running(running) => {
                Ok(Self { owner: Arc::clone(&running.owner), since: running.granted_at, retry_after, record })
            }
            State::Done(_) | State::Released(_) | State::Held(_) => Err(out_of_step(&record)),
        }
    }

    /// Who runs.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Since when, on the store's clock.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// What is left of its lease: before that, only its end can change the answer.
    pub fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// The whole record.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// Another request was made under this key.
#[derive(Clone, Debug)]
pub struct Mismatch {
    pub(super) record: Arc<Record>,
}

impl Mismatch {
    /// The record of the first request, with this mismatch counted in.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// Nobody may run.
#[derive(Clone, Debug)]
pub struct Held {
    record: Arc<Record>,
    reason: Box<str>,
}

impl Held {
    pub(super) fn new(record: Arc<Record>) -> Result<Self> {
        match &record.state {
            State::Held(held) => Ok(Self { reason: held.reason.clone(), record }),
            State::Running(_) | State::Done(_) | State::Released(_) => Err(out_of_step(&record)),
        }
    }

    /// Why: `lapsed`, `attempts`, or what whoever held it said.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The whole record.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

fn out_of_step(record: &Record) -> Error {
    let message = format!("a {} record does not fit the decision made on it", record.state.word().as_str());
    Error::new(ErrorKind::Corrupt, message)
}
