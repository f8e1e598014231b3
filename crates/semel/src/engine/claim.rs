//! Claims and `record_once`: from what a caller wants to what it is told.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::Instrument;

use super::ask::{Claim, ProbeFn, Probed};
use super::batch::Cost;
use super::carry::{Carried, Guess};
use super::decision::{Busy, Decision, Held, Mismatch, RecordedOnce, Replay};
use super::driven::{driven, spawn_if_possible};
use super::permit::Permit;
use super::semel::{Inner, Semel};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::machine::claim::{self, Ask, Claimed, Probe, Recorded};
use crate::machine::settle;
use crate::observe;
use crate::outcome::Outcome;
use crate::policy::OnOutage;
use crate::record::{PermitId, Record};

impl Semel {
    /// Asks to run. Exactly one of all callers of a key is told to.
    pub async fn claim(&self, claim: Claim) -> Result<Decision> {
        let ask = claim.ask(&self.inner)?;
        let span = tracing::debug_span!("semel.claim", key = %ask.key.id().short());
        let deciding = async {
            if claim.wait.is_zero() {
                self.claim_now(&ask, claim.probe.clone()).await
            } else {
                self.claim_waiting(&ask, &claim).await
            }
        };
        match deciding.instrument(span).await {
            Err(error)
                if is_outage(&error) && claim.policy(&self.inner.policy).on_outage == OnOutage::Open =>
            {
                tracing::warn!(key = %ask.key.id().short(), %error, "semel: running unprotected");
                self.inner.counters.unprotected.count();
                Ok(Decision::Unprotected(Permit::unprotected(&self.inner, &ask)))
            }
            Ok(decision) => {
                tracing::debug!(key = %ask.key.id().short(), decision = decision.word(), "semel: decided");
                Ok(decision)
            }
            Err(error) => Err(error),
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

    /// Stores an outcome that is already there, unless the key is taken: claim and complete in one swap.
    pub async fn record_once(&self, claim: Claim, outcome: Outcome) -> Result<RecordedOnce> {
        // Whoever brings an outcome along has no use for a look at somebody else's.
        let ask = Ask { probe: Probe::None, ..claim.ask(&self.inner)? };
        let inner = Arc::clone(&self.inner);
        driven(async move { inner.record_once(&ask, &outcome).await }, |_| ()).await
    }

    pub(super) async fn claim_now(&self, ask: &Ask, probe: Option<ProbeFn>) -> Result<Decision> {
        let started_at = Instant::now();
        if let Some((record, now)) = self.inner.replays.get(ask, started_at) {
            self.inner.note_duplicate(&record, now);
            self.inner.counters.replay.count();
            return Ok(Decision::Replay(Replay::new(record)?));
        }
        let (inner, ask) = (Arc::clone(&self.inner), ask.clone());
        let decision = driven(async move { inner.decide(ask, probe, started_at).await }, unheard).await?;
        observe::claim_took(started_at.elapsed());
        Ok(decision)
    }
}

impl Inner {
    async fn decide(
        self: Arc<Self>,
        ask: Ask,
        probe: Option<ProbeFn>,
        started_at: Instant,
    ) -> Result<Decision> {
        let carried = match probe {
            None => {
                let rule = |found: Option<&Record>, now| claim::claim(found, &ask, now);
                self.carry(&ask.key, Guess::Absent, rule).await
            }
            Some(probe) => self.claim_probing(&ask, probe).await,
        };
        match carried {
            Ok(carried) => self.decision(carried, started_at),
            Err(error) => {
                if error.kind() == ErrorKind::Unknown {
                    // The claim may have taken, and nobody will run under it.
                    self.disown(ask.key, ask.permit_id);
                }
                Err(error)
            }
        }
    }

    /// Claims, and looks whether the effect landed where the machine says so. What the probe found counts only
    /// for the version that it looked at.
    async fn claim_probing(&self, ask: &Ask, probe: ProbeFn) -> Result<Carried<Claimed>> {
        let mut looked: Option<(Record, Probe)> = None;
        loop {
            let mut asked = ask.clone();
            let guess = if looked.is_some() { Guess::Open } else { Guess::Absent };
            let carried = self
                .carry(&ask.key, guess, |found, now| {
                    asked.probe = match (&looked, found) {
                        (Some((seen, verdict)), Some(found)) if seen.version == found.version => {
                            verdict.clone()
                        }
                        _ => Probe::Offered,
                    };
                    claim::claim(found, &asked, now)
                })
                .await?;
            match (carried.answer, carried.record) {
                (Claimed::Look, Some(record)) => {
                    let verdict = match probe(record.clone()).await {
                        Probed::Landed(outcome) => Probe::Landed(outcome),
                        Probed::NotLanded => Probe::NotLanded,
                        Probed::CannotTell => Probe::CannotTell,
                    };
                    looked = Some((record, verdict));
                }
                (answer, record) => return Ok(Carried { answer, record, ..carried }),
            }
        }
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

    async fn record_once(self: &Arc<Self>, ask: &Ask, outcome: &Outcome) -> Result<RecordedOnce> {
        let started_at = Instant::now();
        let rule = |found: Option<&Record>, now| claim::record_once(found, ask, outcome, now);
        let Carried { answer, record, now, cost } = self.carry(&ask.key, Guess::Absent, rule).await?;
        let refusal = match answer {
            Recorded::Recorded => {
                self.counters.run.count();
                self.waiters.wake(&ask.key.id());
                return Ok(RecordedOnce::Recorded(record.ok_or_else(no_record)?));
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
            let rule = |found: Option<&Record>, now| settle::release(found, permit_id, "never started", now);
            match inner.carry(&key, Guess::Open, rule).await {
                Ok(_) => inner.waiters.wake(&key.id()),
                Err(error) => tracing::debug!(key = %key.id().short(), %error, "semel: the lease decides"),
            }
        });
    }
}

/// Nobody heard this answer, so nobody started: what it granted is given back at once.
pub(super) fn unheard(decision: Decision) {
    if let Decision::Run(permit) = decision {
        permit.disown();
    }
}

fn is_outage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown)
}

fn no_record() -> Error {
    Error::new(ErrorKind::Corrupt, "a decision came without the record it was made on; check the store")
}
