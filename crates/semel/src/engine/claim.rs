//! What a caller asks for, and what it gets: the claim, and the decision on it. Decisions are answers, not errors.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::permit::Permit;
use super::semel::EngineHandle;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::machine::claim::{Ask, Probe, Reentry};
use crate::outcome::Outcome;
use crate::policy::{Lapse, OnFailure, OnOutage, Policy};
use crate::record::{HoldReason, LABEL_BYTES_MAX, PermitId, Record, State};

/// A claim: ask to run.
///
/// ```
/// use std::time::Duration;
/// use semel::{Claim, Fingerprint, Key, Lapse};
///
/// let key = Key::scoped(["acme"], "charge", "order-1042")?;
/// let claim = Claim::new(&key)
///     .fingerprint(Fingerprint::of(&("EUR", 4_200))?)
///     .lease(Duration::from_secs(10))
///     .lapse(Lapse::Hold)
///     .wait_up_to(Duration::from_secs(2));
/// # let _ = claim;
/// # Ok::<(), semel::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a claim does nothing until it is given to an engine"]
pub struct Claim {
    pub(super) key: Key,
    fingerprint: Option<Fingerprint>,
    label: Option<Arc<str>>,
    permit_id: Option<PermitId>,
    owner: Option<Arc<str>>,
    reentry: Reentry,
    first_event: Option<Arc<str>>,
    changes: Changes,
    pub(super) probe: Option<ProbeFn>,
    pub(super) wait: Duration,
}

/// What it means if the caller is gone before it hears that it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    /// The engine minted the permit, and no other caller knows it: what was granted is given back.
    NeverStarted,
    /// The caller brought the permit, may have asked again with it already, and must not find its run given away.
    MayAskAgain,
}

/// What differs from the engine's policy.
#[derive(Clone, Copy, Default)]
struct Changes {
    lease: Option<Duration>,
    retention: Option<Duration>,
    lapse: Option<Lapse>,
    attempts_max: Option<u32>,
    on_failure: Option<OnFailure>,
    on_outage: Option<OnOutage>,
}

pub(super) type ProbeFn = Arc<dyn Fn(Record) -> Pin<Box<dyn Future<Output = Probed> + Send>> + Send + Sync>;

/// What a probe found out about the effect of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// It landed, with this outcome: retries replay it.
    Landed(Outcome),
    /// It did not land: this claim runs.
    NotLanded,
    /// It cannot be told: the record stays held.
    CannotTell,
}

impl Claim {
    /// A claim of `key` under the engine's policy.
    pub fn new(key: &Key) -> Self {
        Self {
            key: key.clone(),
            fingerprint: None,
            label: None,
            permit_id: None,
            owner: None,
            reentry: Reentry::Refused,
            first_event: None,
            changes: Changes::default(),
            probe: None,
            wait: Duration::ZERO,
        }
    }

    /// What the request looks like: another request under the same key is a mismatch.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// What the work is, in words for people: `POST /charges`. At most 256 bytes; never part of the identity.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Go on under a permit that was granted before, in this process or another.
    pub fn permit_id(mut self, permit_id: PermitId) -> Self {
        self.permit_id = Some(permit_id);
        self
    }

    /// The permit id that the caller brought, if it did.
    pub(super) fn given_permit_id(&self) -> Option<PermitId> {
        self.permit_id
    }

    /// What it means if the caller is gone before it hears that it may run.
    pub(super) fn unheard(&self) -> Unheard {
        if self.permit_id.is_none() { Unheard::NeverStarted } else { Unheard::MayAskAgain }
    }

    /// Who asks, if not the engine's owner.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// A running record of the same owner is this caller's own, from before it restarted: take it over at once.
    pub fn reentrant(mut self) -> Self {
        self.reentry = Reentry::Allowed;
        self
    }

    /// The event that asks; a new record remembers it.
    pub fn first_event(mut self, event: &str) -> Self {
        self.first_event = Some(event.into());
        self
    }

    /// How long the permit is good without renewal.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.changes.lease = Some(lease);
        self
    }

    /// How long the record is remembered once settled.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.changes.retention = Some(retention);
        self
    }

    /// What a lapse of this run will mean.
    pub fn lapse(mut self, lapse: Lapse) -> Self {
        self.changes.lapse = Some(lapse);
        self
    }

    /// How many runs may be granted before the record is held.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.changes.attempts_max = Some(attempts);
        self
    }

    /// What an `Err` from the work means.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.changes.on_failure = Some(on_failure);
        self
    }

    /// What to do while the store does not answer.
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.changes.on_outage = Some(on_outage);
        self
    }

    /// Wait at most this long for a running caller to settle, instead of being told that it is busy.
    pub fn wait_up_to(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// After a lapse, or for a record that is held because its outcome is unknown: probe whether the effect landed
    /// instead of running again. One claim at a time probes a key, at most every 10 s; the others, and callers
    /// without a probe, find the record held.
    pub fn probe<F, Fut>(mut self, probe: F) -> Self
    where
        F: Fn(Record) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Probed> + Send + 'static,
    {
        self.changes.lapse = Some(Lapse::Hold);
        self.probe = Some(Arc::new(move |record| Box::pin(probe(record))));
        self
    }

    /// Whether one ask decides it.
    pub(super) fn is_plain(&self) -> bool {
        self.wait.is_zero() && self.probe.is_none()
    }

    /// The policy that this claim is made under.
    pub(super) fn policy(&self, base: &Policy) -> Policy {
        Policy {
            lease: self.changes.lease.unwrap_or(base.lease),
            retention: self.changes.retention.unwrap_or(base.retention),
            lapse: self.changes.lapse.unwrap_or(base.lapse),
            attempts_max: self.changes.attempts_max.or(base.attempts_max),
            on_failure: self.changes.on_failure.unwrap_or(base.on_failure),
            on_outage: self.changes.on_outage.unwrap_or(base.on_outage),
        }
    }

    /// What the machine is asked. Its permit id is minted here, once, and stays the same however often the ask has
    /// to be repeated.
    pub(super) fn ask(&self, engine: &EngineHandle) -> Result<Ask> {
        let policy = self.policy(&engine.policy);
        policy.checked()?;
        self.checked()?;
        Ok(Ask {
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            label: self.label.clone(),
            permit_id: self.permit_id.unwrap_or_else(|| engine.mint()),
            owner: Arc::clone(self.owner.as_ref().unwrap_or(&engine.owner)),
            reentry: self.reentry,
            lease: policy.lease,
            retention: policy.retention,
            lapse: policy.lapse,
            attempts_max: policy.attempts_max,
            first_event: self.first_event.clone(),
            probe: if self.probe.is_some() { Probe::Offered } else { Probe::None },
        })
    }

    /// Refuses what could never work, by the name of the field.
    fn checked(&self) -> Result<()> {
        if self.owner.as_ref().is_some_and(|owner| owner.trim().is_empty()) {
            return Err(Error::invalid("owner is empty; name the caller, or leave it out"));
        }
        if let Some(label) = &self.label
            && label.len() > LABEL_BYTES_MAX
        {
            let message = format!("label is {} bytes long; the most is {LABEL_BYTES_MAX}", label.len());
            return Err(Error::invalid(message));
        }
        Ok(())
    }
}

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
    /// No caller may run until a person or a probe decides.
    Held(Held),
    /// The store does not answer and the policy says to run all the same: the work may run twice.
    Unprotected(Permit),
}

impl Decision {
    /// The word for this decision in logs, metrics and reports.
    pub fn as_str(&self) -> &'static str {
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
    reason = "handed out once; a box would be in the way of callers that match on it"
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
    /// No caller may run until a person or a probe decides.
    Held(Held),
}

/// The work is done.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Done: checked when it is made.
    record: Arc<Record>,
}

impl Replay {
    pub(super) fn new(record: Arc<Record>) -> Result<Self> {
        match record.outcome() {
            Some(_) => Ok(Self { record }),
            None => Err(out_of_step(&record)),
        }
    }

    /// What the run produced, byte for byte.
    pub fn outcome(&self) -> &Outcome {
        self.record.outcome().unwrap_or(&NO_OUTCOME)
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
            State::Running(running) => Ok(Self {
                owner: Arc::clone(&running.grant.owner),
                since: running.grant.granted_at,
                retry_after,
                record,
            }),
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

    /// Whether the run has reported that its outcome is unknown: nothing runs any more, and when the lease ends, the
    /// lapse policy decides.
    pub fn outcome_is_unknown(&self) -> bool {
        self.record.outcome_is_unknown()
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

/// No caller may run.
#[derive(Clone, Debug)]
pub struct Held {
    record: Arc<Record>,
    reason: HoldReason,
}

impl Held {
    pub(super) fn new(record: Arc<Record>) -> Result<Self> {
        match &record.state {
            State::Held(held) => Ok(Self { reason: held.reason.clone(), record }),
            State::Running(_) | State::Done(_) | State::Released(_) => Err(out_of_step(&record)),
        }
    }

    /// Why: `lapsed`, `attempts`, or the words of the run that held it.
    pub fn reason(&self) -> &str {
        self.reason.as_str()
    }

    /// The whole record.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// Stands where there must be an outcome and can be no panic.
static NO_OUTCOME: LazyLock<Outcome> = LazyLock::new(|| Outcome::success(""));

fn out_of_step(record: &Record) -> Error {
    let message = format!("a {} record does not fit the decision made on it", record.state.kind().as_str());
    Error::new(ErrorKind::Corrupt, message)
}

/// What `claim_all` is told.
#[derive(Debug)]
#[must_use = "only Run gives the right to run"]
pub enum ClaimedAll {
    /// Every key is this caller's: one permit each, in the order of the claims, all under one permit id.
    Run(Vec<Permit>),
    /// One key is not, so none is.
    Refused {
        /// The first key, in digest order, that did not run.
        key: Key,
        /// What its claim was told.
        decision: Box<Decision>,
    },
}
