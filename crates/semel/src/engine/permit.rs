//! The right to run, and how it ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batch::Cost;
use super::carry::{Carried, Guess, Rule, let_go};
use super::handed::PermitParts;
use super::semel::Inner;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, length_prefixed};
use crate::lock::lock;
use crate::machine::settle::{self, Completed, HoldAnswer, Proof, ReleaseAnswer, Renewed};
use crate::observe;
use crate::outcome::Outcome;
use crate::record::{PermitId, Record, State, Step, Version};

/// The right to run. Clones are handles to the same permit.
///
/// Dropping a permit does not release it: a caller that goes away has proved nothing about its effect, and the
/// lease decides.
#[derive(Clone)]
pub struct Permit {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<Inner>,
    key: Key,
    permit_id: PermitId,
    attempt: u32,
    fence: Version,
    lease: Duration,
    protection: Protection,
    /// The record as this permit last wrote it: what settles in one round trip.
    known: Mutex<Option<Arc<Record>>>,
    /// Until when the lease is good at least, on this machine's monotonic clock.
    good_until: Mutex<Instant>,
    lost: AtomicBool,
    lost_signal: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    Protected,
    Unprotected,
}

impl Permit {
    /// The permit that `record` grants. Its deadline starts when the claim was sent, not when it was heard: a slow
    /// reply must shorten the lease, never stretch it.
    pub(super) fn granted(inner: &Arc<Inner>, record: Arc<Record>, sent_at: Instant) -> Result<Self> {
        let State::Running(running) = &record.state else {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "the store granted a run in a record that is not running",
            ));
        };
        let shared = Shared {
            inner: Arc::clone(inner),
            key: record.key.clone(),
            permit_id: running.permit_id,
            attempt: record.attempt,
            fence: running.fence,
            lease: running.lease,
            protection: Protection::Protected,
            good_until: Mutex::new(deadline(sent_at, running.lease)),
            known: Mutex::new(Some(record)),
            lost: AtomicBool::new(false),
            lost_signal: Notify::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A permit that another process handed on.
    pub(super) fn handed(inner: &Arc<Inner>, parts: PermitParts) -> Self {
        let PermitParts { key, permit_id, attempt, fence, lease } = parts;
        let shared = Shared {
            inner: Arc::clone(inner),
            key,
            permit_id,
            attempt,
            fence,
            lease,
            protection: Protection::Protected,
            known: Mutex::new(None),
            good_until: Mutex::new(deadline(Instant::now(), lease)),
            lost: AtomicBool::new(false),
            lost_signal: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The permit of a run that no store knows of. Its fence is 0, lower than any real one.
    pub(super) fn unprotected(inner: &Arc<Inner>, key: &Key, permit_id: PermitId, lease: Duration) -> Self {
        let shared = Shared {
            inner: Arc::clone(inner),
            key: key.clone(),
            permit_id,
            attempt: 1,
            fence: Version::UNSTAMPED,
            lease,
            protection: Protection::Unprotected,
            good_until: Mutex::new(deadline(Instant::now(), lease)),
            known: Mutex::new(None),
            lost: AtomicBool::new(false),
            lost_signal: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What must happen once.
    pub fn key(&self) -> &Key {
        &self.shared.key
    }

    /// The number that proves this permit: with it, [`resume`](super::Semel::resume) goes on in another process.
    pub fn id(&self) -> PermitId {
        self.shared.permit_id
    }

    /// The how-manieth run this is. Beyond 1, an earlier run may have left effects behind.
    pub fn attempt(&self) -> u32 {
        self.shared.attempt
    }

    /// A number that grows with every grant of this key. Hand it to whatever the work writes to, and have that
    /// refuse a lower one than it has seen.
    pub fn fence(&self) -> u64 {
        self.shared.fence.get()
    }

    pub(super) fn fence_version(&self) -> Version {
        self.shared.fence
    }

    /// How long the permit is good without renewal.
    pub fn lease(&self) -> Duration {
        self.shared.lease
    }

    /// A key for a system further down, the same on every attempt: `derive("provider.charge")`.
    pub fn derive(&self, label: &str) -> String {
        let mut digest = Sha256::new();
        length_prefixed(&mut digest, self.shared.key.id().as_bytes());
        length_prefixed(&mut digest, label.as_bytes());
        let digest: [u8; 32] = digest.finalize().into();
        crate::key::RecordId::from_bytes(digest).to_string()
    }

    /// Ends the run with an outcome. An error of kind `Lost` means that another run took over: do not report
    /// success. After any other error, the same call may be made again.
    pub async fn complete(&self, outcome: Outcome) -> Result<()> {
        if self.is_unprotected() {
            return Ok(());
        }
        let started_at = Instant::now();
        let proof = self.proof();
        let carried = self
            .ask("complete", move |found: Option<&Record>, now| settle::complete(found, proof, &outcome, now))
            .await?;
        observe::settle_took_since(started_at);
        match carried.answer {
            Completed::Done => {
                let inner = &self.shared.inner;
                if let (Cost::RoundTrip, Some(record)) = (carried.cost, &carried.record) {
                    inner.replays.keep(record, carried.now, started_at);
                }
                inner.waiters.wake(&self.shared.key.id());
                Ok(())
            }
            Completed::Lost => Err(self.mark_lost("the outcome was not stored")),
        }
    }

    /// Gives up, so that another may run. Says whether there was anything to give up; a done record is never touched.
    pub async fn release(&self, reason: &str) -> Result<ReleaseAnswer> {
        if self.is_unprotected() {
            return Ok(ReleaseAnswer::NotHolding);
        }
        let proof = self.proof();
        let reason: Box<str> = reason.into();
        let carried = self
            .ask("release", move |found: Option<&Record>, now| settle::release(found, proof, &reason, now))
            .await?;
        if carried.answer == ReleaseAnswer::Released {
            self.shared.inner.waiters.wake(&self.shared.key.id());
        }
        Ok(carried.answer)
    }

    /// Ends the run so that nobody may repeat it before a person or a probe has looked at it. Says whether there was
    /// anything to hold.
    pub async fn hold(&self, reason: &str) -> Result<HoldAnswer> {
        if self.is_unprotected() {
            return Ok(HoldAnswer::NotHolding);
        }
        let proof = self.proof();
        let reason: Box<str> = reason.into();
        let carried = self
            .ask("hold", move |found: Option<&Record>, now| settle::hold(found, proof, &reason, now))
            .await?;
        if carried.answer == HoldAnswer::Held {
            self.shared.inner.counters.held.count();
            self.shared.inner.waiters.wake(&self.shared.key.id());
        }
        Ok(carried.answer)
    }

    /// Until when the outcome is remembered, on the store's clock; `None` before the run is done.
    pub fn remembered_until(&self) -> Option<Timestamp> {
        let known = lock(&self.shared.known);
        known.as_ref().filter(|record| record.outcome().is_some())?.live_until()
    }

    /// Whether no store knows of this run: it may happen twice.
    pub fn is_unprotected(&self) -> bool {
        self.shared.protection == Protection::Unprotected
    }

    /// Starts the lease anew. [`heartbeat`](Self::heartbeat) does this by itself.
    pub async fn renew(&self) -> Result<()> {
        if self.is_unprotected() {
            return Ok(());
        }
        let sent_at = Instant::now();
        let (proof, lease) = (self.proof(), self.shared.lease);
        let carried = self
            .ask("renew", move |found: Option<&Record>, now| settle::renew(found, proof, lease, now))
            .await?;
        match carried.answer {
            Renewed::Renewed => {
                *lock(&self.shared.good_until) = deadline(sent_at, lease);
                Ok(())
            }
            Renewed::Lost => Err(self.mark_lost("the lease was not renewed")),
        }
    }

    /// Whether another run may have taken over: the store said so, or the lease ran out unrenewed.
    pub fn is_lost(&self) -> bool {
        !self.is_unprotected()
            && (self.shared.lost.load(Ordering::Acquire) || Instant::now() >= self.good_until())
    }

    /// Returns once [`is_lost`](Self::is_lost) is true. Work that can stop should stop then.
    pub async fn lost(&self) {
        if self.is_unprotected() {
            return std::future::pending().await;
        }
        loop {
            let signal = self.shared.lost_signal.notified();
            if self.is_lost() {
                return;
            }
            // Woken early by the signal, or at the deadline, which a renewal may have moved by then.
            drop(tokio::time::timeout_at(self.good_until(), signal).await);
        }
    }

    /// What shows the store that this permit is meant, and no other run under the same id.
    pub(super) fn proof(&self) -> Proof {
        Proof { permit_id: self.shared.permit_id, fence: Some(self.shared.fence) }
    }

    pub(super) fn good_until(&self) -> Instant {
        *lock(&self.shared.good_until)
    }

    /// The record as this permit last wrote it.
    pub(super) fn known(&self) -> Option<Arc<Record>> {
        lock(&self.shared.known).clone()
    }

    /// The steps that earlier attempts, or this one, have finished.
    pub(super) fn known_step(&self, name: &str) -> Option<Step> {
        let known = lock(&self.shared.known);
        known.as_ref()?.steps().iter().find(|step| &*step.name == name).cloned()
    }

    /// Gives the permit back in the background: nobody started under it.
    pub(super) fn disown(&self) {
        if !self.is_unprotected() {
            self.shared.inner.disown(self.shared.key.clone(), self.shared.permit_id);
        }
    }

    pub(super) fn mark_lost(&self, what: &str) -> Error {
        if !self.shared.lost.swap(true, Ordering::AcqRel) {
            self.shared.inner.counters.lost.count();
            self.shared.lost_signal.notify_waiters();
        }
        Error::lost(format!("{what}: another run took over, or the record is gone; do not report success"))
    }

    /// Carries an ask under this permit to its end, and remembers the record that came of it.
    pub(super) async fn ask<A: Send + Unpin + 'static>(
        &self,
        what: &'static str,
        rule: impl Rule<A>,
    ) -> Result<Carried<A>> {
        let shared = &self.shared;
        let guess = self.known().map_or(Guess::Open, Guess::Unchanged);
        let span = tracing::debug_span!("semel.settle", what, key = %shared.key.id().short());
        let carried = span.in_scope(|| shared.inner.carry(shared.key.clone(), guess, rule, let_go)).await?;
        lock(&shared.known).clone_from(&carried.record);
        Ok(carried)
    }
}

/// The policy bounds leases, so the sum is there; if it were not, no lease at all is the safe reading.
fn deadline(from: Instant, lease: Duration) -> Instant {
    from.checked_add(lease).unwrap_or(from)
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("key", &self.shared.key)
            .field("attempt", &self.shared.attempt)
            .field("fence", &self.shared.fence.get())
            .finish_non_exhaustive()
    }
}
