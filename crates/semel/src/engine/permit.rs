//! The right to run: how it is kept, what it stores on the way, and how it ends.

use std::fmt::{self, Display};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batcher::Rule;
use super::once::{OnceError, from_json, to_json};
use super::semel::{EngineHandle, let_go};
use super::swap_loop::{Guess, Settled, SwapLoop};
use super::upkeep::Heartbeat;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, RecordId, length_prefixed};
use crate::lock::lock;
use crate::machine::amend::{self, Stepped};
use crate::machine::settle::{self, Completed, HoldAnswer, Proof, ReleaseAnswer, Renewed};
use crate::observe;
use crate::outcome::Outcome;
use crate::record::{PermitId, Record, State, Step, Version};
use crate::store::Caching;

/// The right to run. Clones are handles to the same permit.
///
/// Dropping a permit does not release it: a caller that goes away has proved nothing about its effect, and the
/// lease decides.
#[derive(Clone)]
pub struct Permit {
    granted: Arc<Granted>,
}

struct Granted {
    engine: Arc<EngineHandle>,
    parts: PermitParts,
    protection: Protection,
    lease: LeaseClock,
    /// The record as this permit last wrote it: what settles in one round trip.
    last_seen: Mutex<Option<Arc<Record>>>,
}

/// Everything that makes a permit, to be carried to another process. The permit id lets its bearer settle the run: keep
/// it from everybody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermitParts {
    /// What must happen once.
    pub key: Key,
    /// What proves the permit.
    pub permit_id: PermitId,
    /// Attempt number, starting at 1.
    pub attempt: u32,
    /// The number that only grows.
    pub fence: Version,
    /// How long it is good without renewal.
    pub lease: Duration,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease starts anew.
    Renewed,
    /// The run was completed under this permit: there is nothing to renew.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    Protected,
    Unprotected,
}

/// Until when the lease is good, on this machine's monotonic clock.
struct LeaseClock {
    good_until: Mutex<Instant>,
    is_lost: AtomicBool,
    lost: Notify,
}

impl LeaseClock {
    /// A lease that was asked for at `sent_at`: a slow reply must shorten it, never stretch it.
    fn start(sent_at: Instant, lease: Duration) -> Self {
        Self {
            good_until: Mutex::new(deadline(sent_at, lease)),
            is_lost: AtomicBool::new(false),
            lost: Notify::new(),
        }
    }

    fn restart(&self, sent_at: Instant, lease: Duration) {
        *lock(&self.good_until) = deadline(sent_at, lease);
    }

    fn good_until(&self) -> Instant {
        *lock(&self.good_until)
    }
}

/// The policy bounds leases, so the sum is there; if it were not, no lease at all is the safe reading.
fn deadline(from: Instant, lease: Duration) -> Instant {
    from.checked_add(lease).unwrap_or(from)
}

impl Permit {
    /// The permit that `record` grants to a claim that was sent at `sent_at`.
    pub(super) fn of_record(
        engine: &Arc<EngineHandle>,
        record: Arc<Record>,
        sent_at: Instant,
    ) -> Result<Self> {
        let State::Running(running) = &record.state else {
            let message = "the store granted a run in a record that is not running; check the store";
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        let parts = PermitParts {
            key: record.key.clone(),
            permit_id: running.grant.permit_id,
            attempt: record.attempt,
            fence: running.grant.fence,
            lease: running.lease,
        };
        Ok(Self::new(engine, parts, Protection::Protected, sent_at, Some(record)))
    }

    /// A permit that another process handed on.
    pub(super) fn of_parts(engine: &Arc<EngineHandle>, parts: PermitParts) -> Self {
        Self::new(engine, parts, Protection::Protected, Instant::now(), None)
    }

    /// The permit of a run that no store knows of. Its fence is 0, lower than any real one.
    pub(super) fn unprotected(
        engine: &Arc<EngineHandle>,
        key: Key,
        permit_id: PermitId,
        lease: Duration,
    ) -> Self {
        let parts = PermitParts { key, permit_id, attempt: 1, fence: Version::UNSTAMPED, lease };
        Self::new(engine, parts, Protection::Unprotected, Instant::now(), None)
    }

    fn new(
        engine: &Arc<EngineHandle>,
        parts: PermitParts,
        protection: Protection,
        sent_at: Instant,
        last_seen: Option<Arc<Record>>,
    ) -> Self {
        let lease = LeaseClock::start(sent_at, parts.lease);
        let (engine, last_seen) = (Arc::clone(engine), Mutex::new(last_seen));
        Self { granted: Arc::new(Granted { engine, parts, protection, lease, last_seen }) }
    }

    /// What must happen once.
    pub fn key(&self) -> &Key {
        &self.granted.parts.key
    }

    /// The number that proves this permit: with it, [`resume`](super::Semel::resume) goes on in another process.
    pub fn id(&self) -> PermitId {
        self.granted.parts.permit_id
    }

    /// Attempt number, starting at 1. Beyond 1, an earlier run may have left effects behind.
    pub fn attempt(&self) -> u32 {
        self.granted.parts.attempt
    }

    /// A number that grows with every grant of this key. Hand it to whatever the work writes to, and have that
    /// refuse a lower one than it has seen.
    pub fn fence(&self) -> u64 {
        self.granted.parts.fence.get()
    }

    /// How long the permit is good without renewal.
    pub fn lease(&self) -> Duration {
        self.granted.parts.lease
    }

    /// What is left of the lease if it is not renewed, as this process knows it: the store may have a little more.
    pub fn lease_left(&self) -> Duration {
        self.good_until().saturating_duration_since(Instant::now())
    }

    /// Whether no store knows of this run: it may happen twice.
    pub fn is_unprotected(&self) -> bool {
        self.granted.protection == Protection::Unprotected
    }

    /// What another process needs to go on under this permit; `None` if no store knows of the run.
    pub fn parts(&self) -> Option<PermitParts> {
        (!self.is_unprotected()).then(|| self.granted.parts.clone())
    }

    /// A key for a system further down, the same on every attempt: `derive("provider.charge")`.
    pub fn derive(&self, label: &str) -> String {
        let mut digest = Sha256::new();
        length_prefixed(&mut digest, self.key().id().as_bytes());
        length_prefixed(&mut digest, label.as_bytes());
        RecordId::from_bytes(digest.finalize().into()).to_string()
    }

    /// Ends the run with an outcome. An error of kind `Lost` means that another run took over: do not report
    /// success. After any other error, the same call may be made again.
    pub async fn complete(&self, outcome: Outcome) -> Result<()> {
        if self.is_unprotected() {
            return Ok(());
        }
        let started_at = Instant::now();
        let proof = self.proof();
        let rule = move |found: Option<&Record>, now| settle::complete(found, proof, &outcome, now);
        let settled = self.settle("complete", rule).await?;
        observe::settle_took_since(started_at);
        self.completed(&settled, started_at)
    }

    /// What a complete that was sent at `sent_at` means to its caller.
    pub(super) fn completed(&self, settled: &Settled<Completed>, sent_at: Instant) -> Result<()> {
        let engine = &self.granted.engine;
        match settled.answer {
            Completed::Done => {
                if let (Caching::Allowed, Some(record)) = (settled.caching, &settled.record) {
                    engine.replays.keep(record, settled.now, sent_at);
                }
                engine.waiters.wake(&self.key().id());
                Ok(())
            }
            Completed::Lost => Err(self.report_lost("the outcome was not stored")),
        }
    }

    /// Gives up, so that another may run. Says whether there was anything to give up; a done record is never touched.
    pub async fn release(&self, reason: &str) -> Result<ReleaseAnswer> {
        let (proof, reason): (_, Box<str>) = (self.proof(), reason.into());
        self.released(move |found: Option<&Record>, now| settle::release(found, proof, &reason, now)).await
    }

    /// Gives up a run of which nothing has to be remembered: it had no effect. Like [`release`](Self::release), but
    /// a first attempt without steps does not count as an attempt, and its record is gone after a minute instead of
    /// its retention.
    pub async fn give_back(&self, reason: &str) -> Result<ReleaseAnswer> {
        let (proof, reason): (_, Box<str>) = (self.proof(), reason.into());
        self.released(move |found: Option<&Record>, now| settle::give_back(found, proof, &reason, now)).await
    }

    async fn released(&self, rule: impl Rule<ReleaseAnswer>) -> Result<ReleaseAnswer> {
        if self.is_unprotected() {
            return Ok(ReleaseAnswer::NotHolding);
        }
        let settled = self.settle("release", rule).await?;
        if settled.answer == ReleaseAnswer::Released {
            self.granted.engine.waiters.wake(&self.key().id());
        }
        Ok(settled.answer)
    }

    /// Ends the run so that no caller repeats it before a person or a probe has decided. Says whether there was
    /// anything to hold.
    pub async fn hold(&self, reason: &str) -> Result<HoldAnswer> {
        if self.is_unprotected() {
            return Ok(HoldAnswer::NotHolding);
        }
        let (proof, reason): (_, Box<str>) = (self.proof(), reason.into());
        let rule = move |found: Option<&Record>, now| settle::hold(found, proof, &reason, now);
        let settled = self.settle("hold", rule).await?;
        if settled.answer == HoldAnswer::Held {
            self.granted.engine.counters.held.count();
            self.granted.engine.waiters.wake(&self.key().id());
        }
        Ok(settled.answer)
    }

    /// Starts the lease anew; [`heartbeat`](Self::heartbeat) does this by itself. A run that is completed has nothing to
    /// renew, and has lost nothing.
    pub async fn renew(&self) -> Result<Renewal> {
        if self.is_unprotected() {
            return Ok(Renewal::Renewed);
        }
        let sent_at = Instant::now();
        let (proof, lease) = (self.proof(), self.lease());
        let rule = move |found: Option<&Record>, now| settle::renew(found, proof, lease, now);
        let settled = self.settle("renew", rule).await?;
        self.renewed(settled.answer, sent_at)
    }

    /// What a renewal that was sent at `sent_at` means to its caller.
    pub(super) fn renewed(&self, answer: Renewed, sent_at: Instant) -> Result<Renewal> {
        match answer {
            Renewed::Renewed => {
                self.granted.lease.restart(sent_at, self.lease());
                Ok(Renewal::Renewed)
            }
            Renewed::Done => Ok(Renewal::Done),
            Renewed::Lost => Err(self.report_lost("the lease was not renewed")),
        }
    }

    /// Renews the lease at a third of it, until the heartbeat is dropped, the run is completed, or the permit is lost.
    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat::start(self)
    }

    /// Until when the outcome is remembered, on the store's clock; `None` before the run is done.
    pub fn remembered_until(&self) -> Option<Timestamp> {
        self.last_seen().filter(|record| record.outcome().is_some())?.live_until()
    }

    /// Whether another run may have taken over: the store said so, or the lease ran out unrenewed.
    pub fn is_lost(&self) -> bool {
        let lease = &self.granted.lease;
        !self.is_unprotected()
            && (lease.is_lost.load(Ordering::Acquire) || Instant::now() >= lease.good_until())
    }

    /// Returns once [`is_lost`](Self::is_lost) is true. Work that can stop should stop then.
    pub async fn lost(&self) {
        if self.is_unprotected() {
            return std::future::pending().await;
        }
        loop {
            let signal = self.granted.lease.lost.notified();
            if self.is_lost() {
                return;
            }
            // Woken early by the signal, or at the deadline, which a renewal may have moved by then.
            drop(tokio::time::timeout_at(self.good_until(), signal).await);
        }
    }

    /// Runs a step of the work, or hands back its value if an earlier attempt finished it. The value is stored
    /// before this returns.
    pub async fn step<T, E, F, Fut>(&self, name: &str, work: F) -> Result<T, OnceError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: Display,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        checked_step_name(name)?;
        let finished = self
            .last_seen()
            .and_then(|record| record.steps().iter().find(|step| &*step.name == name).cloned());
        if let Some(step) = finished {
            return Ok(from_json(&step.value)?);
        }
        let value = work().await.map_err(OnceError::Work)?;
        self.put_step(name, to_json(&value)?).await?;
        Ok(value)
    }

    /// The steps that this attempt and earlier ones have finished, as far as this process knows.
    pub fn steps(&self) -> Vec<Step> {
        self.last_seen().map(|record| record.finished_steps().cloned().collect()).unwrap_or_default()
    }

    /// Stores the value of a finished step, as bytes. A step that is there already keeps its value.
    pub async fn put_step(&self, name: &str, value: impl Into<Arc<[u8]>>) -> Result<()> {
        checked_step_name(name)?;
        if self.is_unprotected() {
            return Ok(());
        }
        let step = Step { name: name.into(), value: value.into() };
        let proof = self.proof();
        let rule = move |found: Option<&Record>, now| amend::step(found, proof, &step, now);
        match self.settle("step", rule).await?.answer {
            Stepped::Stored => Ok(()),
            Stepped::Lost => Err(self.report_lost("the step was not stored")),
        }
    }

    /// Notes that this run has ended and its outcome is unknown. Claims of the key are then told so
    /// ([`Busy::outcome_is_unknown`](super::Busy::outcome_is_unknown)) until the lease ends and the lapse policy
    /// decides. Does not renew the lease; end a [`heartbeat`](Self::heartbeat) first.
    pub async fn report_unknown(&self) -> Result<()> {
        if self.is_unprotected() {
            return Ok(());
        }
        let proof = self.proof();
        let rule = move |found: Option<&Record>, now| amend::outcome_unknown(found, proof, now);
        match self.settle("report unknown", rule).await?.answer {
            Stepped::Stored => Ok(()),
            Stepped::Lost => Err(self.report_lost("that the outcome is unknown was not stored")),
        }
    }

    /// The end of this run, for a caller that drives it inside a transaction of its own; `None` if no store knows of
    /// the run.
    pub fn complete_loop(&self, outcome: Outcome) -> Option<super::swap_loop::BoxedSwapLoop<Completed>> {
        let proof = self.proof();
        let rule: super::swap_loop::BoxedRule<Completed> =
            Box::new(move |found, now| settle::complete(found, proof, &outcome, now));
        (!self.is_unprotected())
            .then(|| SwapLoop::new(self.key().clone(), self.guess(), rule).permit_id(self.id()))
    }

    /// Notes that the permit is lost, and makes the error that says so: `what` did not happen.
    pub fn report_lost(&self, what: &str) -> Error {
        if !self.granted.lease.is_lost.swap(true, Ordering::AcqRel) {
            self.granted.engine.counters.lost.count();
            self.granted.lease.lost.notify_waiters();
        }
        Error::lost(format!("{what}: another run took over, or the record is gone; do not report success"))
    }

    /// What shows the store that this permit is meant, and no other run under the same id.
    pub(super) fn proof(&self) -> Proof {
        Proof { permit_id: self.id(), fence: Some(self.granted.parts.fence) }
    }

    pub(super) fn good_until(&self) -> Instant {
        self.granted.lease.good_until()
    }

    pub(super) fn engine(&self) -> &Arc<EngineHandle> {
        &self.granted.engine
    }

    /// The record as this permit last wrote it.
    pub(super) fn last_seen(&self) -> Option<Arc<Record>> {
        lock(&self.granted.last_seen).clone()
    }

    pub(super) fn see(&self, record: Option<Arc<Record>>) {
        *lock(&self.granted.last_seen) = record;
    }

    pub(super) fn guess(&self) -> Guess {
        self.last_seen().map_or(Guess::Unknown, Guess::Unchanged)
    }

    /// Gives the permit back in the background: no caller started under it.
    pub(super) fn disown(&self) {
        if !self.is_unprotected() {
            self.granted.engine.disown(self.key().clone(), self.id());
        }
    }

    /// Asks under this permit, and remembers the record as it is then.
    async fn settle<A: Send + Unpin + 'static>(
        &self,
        what: &'static str,
        rule: impl Rule<A>,
    ) -> Result<Settled<A>> {
        let engine = &self.granted.engine;
        engine.attend();
        let mut swap_loop = SwapLoop::new(self.key().clone(), self.guess(), rule).permit_id(self.id());
        let span = tracing::debug_span!("semel.settle", what, key = %self.key().id().short());
        let settled = match span.in_scope(|| engine.batcher.ask_now(&mut swap_loop)) {
            Ok(settled) => settled?,
            Err(waits) => engine.batcher.ask_later(swap_loop, waits, |_| let_go).under(self.id()).await?,
        };
        self.see(settled.record.clone());
        Ok(settled)
    }
}

fn checked_step_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a step's name is empty; name it"));
    }
    if Step::is_reserved(name) {
        return Err(Error::invalid(format!("a step cannot be named {name}: semel uses that name itself")));
    }
    Ok(())
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("key", self.key())
            .field("attempt", &self.attempt())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
