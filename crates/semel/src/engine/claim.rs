//! Claims and `record_once`: from what a caller wants to what it is told.

use std::sync::Arc;

use tokio::time::Instant;

use super::ask::{Claim, ProbeFn, Probed, Unheard};
use super::batch::Cost;
use super::carry::{Carried, Carrying, Guess, let_go};
use super::decision::{Busy, Decision, Held, Mismatch, RecordedOnce, Replay};
use super::driven::spawn_if_possible;
use super::permit::Permit;
use super::semel::{Inner, Semel};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::machine::claim::{self, Ask, Claimed, Probe, Recorded};
use crate::machine::settle;
use crate::observe;
use crate::outcome::Outcome;
use crate::policy::OnOutage;
use crate::record::{PermitId, Record, State, Version};

impl Semel {
    /// Asks to run. Exactly one of all callers of a key is told to.
    pub async fn claim(&self, claim: Claim) -> Result<Decision> {
        let (permit_id, decided) = if claim.is_plain() {
            let (permit_id, started) = self.start(claim.ask(&self.inner)?, claim.unheard());
            (permit_id, self.finish(started).await)
        } else {
            let ask = claim.ask(&self.inner)?;
            // Out of line: waiting and probing need much more state than most claims should carry around.
            (ask.permit_id, Box::pin(self.claim_patiently(ask, &claim)).await)
        };
        match decided {
            Ok(decision) => {
                tracing::debug!(key = %claim.key.id().short(), decision = decision.word(), "semel: decided");
                Ok(decision)
            }
            Err(error) => self.inner.without_store(&claim, permit_id, error),
        }
    }

    /// Asks to run, and waits at most `wait` for a running caller to settle.
    pub async fn claim_or_wait(&self, claim: Claim, wait: std::time::Duration) -> Result<Decision> {
        self.claim(claim.wait_up_to(wait)).await
    }

    /// Goes on under a permit that was granted before, in this process or another, and renews its lease.
    pub async fn resume(&self, key: &Key, permit_id: PermitId) -> Result<Decision> {
        self.claim(Claim::new(key).permit_id(permit_id)).await
    }

    /// A permit of a run that no store knows of, for callers that give up on a slow store before the engine does and
    /// whose policy is to run all the same. It is counted and logged; the work may run twice.
    pub fn unprotected(&self, claim: &Claim, why: &Error) -> Permit {
        self.inner.unprotected(claim, self.inner.mint(), why)
    }

    /// Stores an outcome that is already there, unless the key is taken: claim and complete in one swap.
    pub async fn record_once(&self, claim: Claim, outcome: Outcome) -> Result<RecordedOnce> {
        let started_at = Instant::now();
        // Whoever brings an outcome along has no use for a look at somebody else's.
        let ask = Ask { probe: Probe::None, ..claim.ask(&self.inner)? };
        let rule = move |found: Option<&Record>, now| claim::record_once(found, &ask, &outcome, now);
        let carried = self.inner.carry(claim.key, Guess::Absent, rule, let_go).await?;
        self.inner.recorded(carried, started_at)
    }

    pub(super) async fn claim_now(&self, ask: Ask, unheard: Unheard) -> Result<Decision> {
        let (_, started) = self.start(ask, unheard);
        self.finish(started).await
    }

    /// Goes as far as can be gone at once. Not async: what an ask holds then never becomes part of a future.
    fn start(&self, ask: Ask, unheard: Unheard) -> (PermitId, Started) {
        let (permit_id, started_at) = (ask.permit_id, Instant::now());
        let started = match self.inner.replays.get(&ask, started_at) {
            Some((record, now)) => Started::Known(record, now),
            None => Started::Asked(self.inner.claim(ask, unheard), started_at),
        };
        (permit_id, started)
    }

    async fn finish(&self, started: Started) -> Result<Decision> {
        match started {
            Started::Known(record, now) => {
                self.inner.note_duplicate(&record, now);
                self.inner.counters.replay.count();
                Ok(Decision::Replay(Replay::new(record)?))
            }
            Started::Asked(asked, started_at) => {
                let carried = asked.await?;
                observe::claim_took_since(started_at);
                self.inner.decision(carried, started_at)
            }
        }
    }

    /// Claims with a probe.
    pub(super) async fn claim_probing(
        &self,
        ask: Ask,
        probe: &ProbeFn,
        unheard: Unheard,
    ) -> Result<Decision> {
        let started_at = Instant::now();
        let carried = self.inner.claim_probing(&ask, probe, unheard).await?;
        observe::claim_took_since(started_at);
        self.inner.decision(carried, started_at)
    }
}

/// A claim on its way.
enum Started {
    /// Its record was kept from before, and needs no store.
    Known(Arc<Record>, Timestamp),
    /// The store was asked, at this moment.
    Asked(Carrying<Claimed>, Instant),
}

impl Inner {
    fn claim(self: &Arc<Self>, ask: Ask, unheard: Unheard) -> Carrying<Claimed> {
        let (key, unheard) = (ask.key.clone(), give_back(ask.permit_id, unheard));
        let rule = move |found: Option<&Record>, now| claim::claim(found, &ask, now);
        let span = tracing::debug_span!("semel.claim", key = %key.id().short());
        span.in_scope(|| self.carry(key, Guess::Absent, rule, unheard))
    }

    /// What an error means to a claim: a refusal, or, if the policy says so, a run without protection.
    fn without_store(self: &Arc<Self>, claim: &Claim, permit_id: PermitId, error: Error) -> Result<Decision> {
        if error.kind() == ErrorKind::Unknown && claim.unheard() == Unheard::NeverStarted {
            // The claim may have taken, and nobody will run under its permit.
            self.disown(claim.key.clone(), permit_id);
        }
        let policy = claim.policy(&self.policy);
        let is_outage = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown);
        if !is_outage || policy.on_outage == OnOutage::Closed {
            return Err(error);
        }
        Ok(Decision::Unprotected(self.unprotected(claim, permit_id, &error)))
    }

    fn unprotected(self: &Arc<Self>, claim: &Claim, permit_id: PermitId, why: &Error) -> Permit {
        tracing::warn!(key = %claim.key.id().short(), %why, "semel: running unprotected");
        self.counters.unprotected.count();
        Permit::unprotected(self, &claim.key, permit_id, claim.policy(&self.policy).lease)
    }

    /// Claims, and looks whether the effect landed where the machine says so. What the probe found counts only
    /// for the version that it looked at.
    async fn claim_probing(
        self: &Arc<Self>,
        ask: &Ask,
        probe: &ProbeFn,
        unheard: Unheard,
    ) -> Result<Carried<Claimed>> {
        let mut found_out: Option<(Version, Probe)> = None;
        loop {
            let carried = self.claim_knowing(ask.clone(), found_out.take(), unheard).await?;
            let (Claimed::Look, Some(record)) = (carried.answer, &carried.record) else { return Ok(carried) };
            let verdict = match probe(Record::clone(record)).await {
                Probed::Landed(outcome) => Probe::Landed(outcome),
                Probed::NotLanded => Probe::NotLanded,
                Probed::CannotTell => Probe::CannotTell,
            };
            found_out = Some((record.version, verdict));
        }
    }

    fn claim_knowing(
        self: &Arc<Self>,
        ask: Ask,
        known: Option<(Version, Probe)>,
        unheard: Unheard,
    ) -> Carrying<Claimed> {
        let (key, unheard) = (ask.key.clone(), give_back(ask.permit_id, unheard));
        let guess = if known.is_some() { Guess::Open } else { Guess::Absent };
        let mut ask = ask;
        let rule = move |found: Option<&Record>, now| {
            ask.probe = match (&known, found) {
                (Some((version, verdict)), Some(found)) if *version == found.version => verdict.clone(),
                _ => Probe::Offered,
            };
            claim::claim(found, &ask, now)
        };
        self.carry(key, guess, rule, unheard)
    }

    fn decision(self: &Arc<Self>, carried: Carried<Claimed>, started_at: Instant) -> Result<Decision> {
        let Carried { answer, record, now, cost } = carried;
        let record = record.ok_or_else(no_record)?;
        Ok(match answer {
            Claimed::Run => {
                self.counters.run.count();
                Decision::Run(Permit::granted(self, record, started_at)?)
            }
            Claimed::Replay => {
                self.note_duplicate(&record, now);
                self.counters.replay.count();
                if cost == Cost::RoundTrip {
                    self.replays.keep(&record, now, started_at);
                }
                Decision::Replay(Replay::new(record)?)
            }
            Claimed::Busy { retry_after } => {
                self.note_duplicate(&record, now);
                self.counters.busy.count();
                Decision::Busy(Busy::new(record, retry_after)?)
            }
            Claimed::Mismatch => {
                self.counters.mismatch.count();
                Decision::Mismatch(Mismatch { record })
            }
            Claimed::Held | Claimed::Look => {
                self.counters.held.count();
                Decision::Held(Held::new(record)?)
            }
        })
    }

    pub(super) fn recorded(
        self: &Arc<Self>,
        carried: Carried<Recorded>,
        started_at: Instant,
    ) -> Result<RecordedOnce> {
        let Carried { answer, record, now, cost } = carried;
        let refusal = match answer {
            Recorded::Recorded => {
                self.counters.run.count();
                let record = record.ok_or_else(no_record)?;
                self.waiters.wake(&record.key.id());
                return Ok(RecordedOnce::Recorded(Arc::unwrap_or_clone(record)));
            }
            Recorded::Refused(refusal) => refusal,
        };
        match self.decision(Carried { answer: refusal, record, now, cost }, started_at)? {
            Decision::Replay(replay) => Ok(RecordedOnce::Replay(replay)),
            Decision::Busy(busy) => Ok(RecordedOnce::Busy(busy)),
            Decision::Mismatch(mismatch) => Ok(RecordedOnce::Mismatch(mismatch)),
            Decision::Held(held) => Ok(RecordedOnce::Held(held)),
            Decision::Run(_) | Decision::Unprotected(_) => Err(no_record()),
        }
    }

    /// Gives back, in the background, what a claim may have taken for nobody.
    pub(super) fn disown(self: &Arc<Self>, key: Key, permit_id: PermitId) {
        let inner = Arc::clone(self);
        spawn_if_possible(async move {
            let rule =
                move |found: Option<&Record>, now| settle::release(found, permit_id, "never started", now);
            let id = key.id();
            match inner.carry(key, Guess::Open, rule, let_go).await {
                Ok(_) => inner.waiters.wake(&id),
                Err(error) => tracing::debug!(key = %id.short(), %error, "semel: the lease decides"),
            }
        });
    }
}

/// Whoever did not hear that it may run never started: what it was granted is given back at once. Not what it only
/// renewed: a run that is resumed may well have started before.
fn give_back(
    permit_id: PermitId,
    unheard: Unheard,
) -> impl FnOnce(&Arc<Inner>, Carried<Claimed>) + Send + 'static {
    move |inner, carried| {
        if unheard == Unheard::NeverStarted
            && let (Claimed::Run, Some(record)) = (carried.answer, carried.record)
            && let State::Running(running) = &record.state
            && running.fence == record.version
        {
            inner.disown(record.key.clone(), permit_id);
        }
    }
}

fn no_record() -> Error {
    Error::new(ErrorKind::Corrupt, "a decision came without the record it was made on; check the store")
}
