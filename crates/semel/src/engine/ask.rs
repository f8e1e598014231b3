//! What a caller wants: the claim, with whatever differs from the engine's own policy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::semel::Inner;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::machine::claim::{Ask, Probe, Reentry};
use crate::outcome::Outcome;
use crate::policy::{Lapse, OnFailure, OnOutage, Policy};
use crate::record::{PermitId, Record};

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
    permit_id: Option<PermitId>,
    owner: Option<Arc<str>>,
    reentry: Reentry,
    first_event: Option<Box<str>>,
    changes: Changes,
    pub(super) probe: Option<ProbeFn>,
    pub(super) wait: Duration,
}

/// What it means if nobody is left to hear that a claim may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    /// The engine minted the permit, and nobody else knows it: what was granted is given back.
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

/// What a probe found out about the effect of a lapsed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// It landed, with this outcome: retries replay it.
    Landed(Outcome),
    /// It did not land: this claim runs.
    NotLanded,
    /// Nobody can tell: the record is held.
    CannotTell,
}

impl Claim {
    /// A claim of `key` under the engine's policy.
    pub fn new(key: &Key) -> Self {
        Self {
            key: key.clone(),
            fingerprint: None,
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

    /// Go on under a permit that was granted before, in this process or another.
    pub fn permit_id(mut self, permit_id: PermitId) -> Self {
        self.permit_id = Some(permit_id);
        self
    }

    /// What it means if nobody is left to hear that this claim may run.
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

    /// After a lapse, look whether the effect landed instead of running again. Everybody without this probe
    /// finds the record held.
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
    pub(super) fn ask(&self, inner: &Inner) -> Result<Ask> {
        let policy = self.policy(&inner.policy);
        policy.checked()?;
        Ok(Ask {
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            permit_id: self.permit_id.unwrap_or_else(|| inner.mint()),
            owner: Arc::clone(self.owner.as_ref().unwrap_or_else(|| inner.owner.mine())),
            reentry: self.reentry,
            lease: policy.lease,
            retention: policy.retention,
            lapse: policy.lapse,
            attempts_max: policy.attempts_max,
            first_event: self.first_event.clone(),
            probe: if self.probe.is_some() { Probe::Offered } else { Probe::None },
        })
    }
}
