//! One of many callers: claims, completes, releases, leaves, and comes back for what was left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use semel::record::{PermitId, State};
use semel::{Claim, Decision, ErrorKind, Key, Permit, ReleaseAnswer, Replay, Result};

use super::ask::{Answer, Asker};
use super::choice::{Choices, End, Pick};
use super::opened::{Left, Location, Opened};
use super::payload::{self, Payload};
use super::say;

/// So many times longer than in a folder: a server is away for seconds, and what is past its retention when it is back
/// cannot be missed.
const SERVER_RETENTION_TIMES: u32 = 20;

/// What all callers share.
pub(super) struct Crowd {
    pub(super) opened: Opened,
    pub(super) asker: Asker,
    left: Mutex<Vec<Left>>,
    life: u64,
    counter: AtomicU64,
    /// One complete that is acknowledged and never made, if there is to be one.
    forget: AtomicBool,
}

impl Crowd {
    pub(super) fn new(opened: Opened, left: Vec<Left>, life: u64, forget: bool) -> Self {
        let (counter, forget) = (AtomicU64::new(0), AtomicBool::new(forget));
        let asker = Asker::new(opened.location);
        Self { opened, asker, left: Mutex::new(left), life, counter, forget }
    }

    fn left(&self) -> MutexGuard<'_, Vec<Left>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }
}

/// One caller.
pub(super) struct Caller {
    crowd: Arc<Crowd>,
    choices: Choices,
}

impl Caller {
    pub(super) fn new(crowd: Arc<Crowd>, seed: u64, number: u64) -> Self {
        Self { crowd, choices: Choices::new(seed.wrapping_mul(1_000_003).wrapping_add(number)) }
    }

    /// Goes on for ever, in a folder until the store fails. What no outage explains is said, and counts against the store.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(error) = self.cycle().await {
                say::wrong(&format_args!("{:?}: {error}", error.kind()));
                if self.crowd.opened.location == Location::Folder {
                    return;
                }
            }
        }
    }

    async fn cycle(&mut self) -> Result<()> {
        let next = self.next()?;
        let (crowd, name, permit_id) = (Arc::clone(&self.crowd), next.key.name(), next.permit_id.get());
        let claim = || Claim::new(&next.key).permit_id(next.permit_id).retention(next.retention);
        let line = format!("claiming {name} {permit_id:x}");
        let Answer { value, unseen, .. } = crowd.asker.ask(&line, || crowd.opened.semel.claim(claim())).await;
        let permit = match value? {
            Decision::Run(permit) => permit,
            Decision::Replay(replay) => {
                replayed(&replay, &next);
                return Ok(());
            }
            Decision::Busy(_) => {
                say::line(format_args!("busy {name} {permit_id:x}"));
                return Ok(());
            }
            other @ (Decision::Mismatch(_) | Decision::Held(_) | Decision::Unprotected(_)) => {
                say::wrong(&format_args!("{name} was answered with {}", other.as_str()));
                return Ok(());
            }
        };
        let (fence, attempt, now) = (permit.fence(), permit.attempt(), crowd.opened.now_micros());
        say::line(format_args!("granted {name} {permit_id:x} {fence} {attempt} {now}"));
        drop(unseen);
        self.end(&permit, &next).await
    }

    /// What to claim: a key, under a new permit id or the one of whoever left it running.
    fn next(&mut self) -> Result<Left> {
        let left = self.crowd.left().len();
        let picked = self.choices.pick(left);
        if let Pick::Left = picked
            && let Some(left) = self.crowd.left().pop()
        {
            return Ok(left);
        }
        let (name, retention) = match picked {
            Pick::Pooled(number) => (format!("pool-{number}"), self.choices.retention_of_pooled()),
            Pick::Fresh | Pick::Left => {
                let name = format!("fresh-{:x}-{:x}", self.crowd.life, self.crowd.count());
                (name, self.choices.retention_of_fresh())
            }
        };
        let times = match self.crowd.opened.location {
            Location::Folder => 1,
            Location::Server => SERVER_RETENTION_TIMES,
        };
        let (permit_id, retention) =
            (PermitId::new(self.choices.permit_id()), retention.saturating_mul(times));
        Ok(Left { key: Key::new("crash", &name)?, permit_id, retention })
    }

    async fn end(&mut self, permit: &Permit, claimed: &Left) -> Result<()> {
        match self.choices.end() {
            End::Complete => self.complete(permit, claimed.retention).await,
            End::Release => self.release(permit, claimed.retention).await,
            End::Leave => {
                // Behind the others: what is left stays so for a while.
                self.crowd.left().insert(0, claimed.clone());
                Ok(())
            }
        }
    }

    async fn complete(&mut self, permit: &Permit, retention: Duration) -> Result<()> {
        let (name, fence, crowd) = (permit.key().name(), permit.fence(), &self.crowd);
        let payload = Payload { fence, counter: crowd.count(), bytes: self.choices.outcome_bytes() };
        let (now, kept_micros, outcome) = (crowd.opened.now_micros(), retention.as_micros(), payload.name());
        let line = format!("completing {name} {fence} {now} {kept_micros} {outcome}");
        let is_forgotten = crowd.forget.swap(false, Ordering::Relaxed);
        let complete =
            || async move { if is_forgotten { Ok(()) } else { permit.complete(payload.outcome()).await } };
        let answer = crowd.asker.ask(&line, complete).await;
        let kept_until = u128::from(now).saturating_add(kept_micros);
        match answer.value {
            Ok(()) => say::line(format_args!("done {name} {fence}")),
            // An earlier try took, and its retention was over before the server could be asked again.
            Err(error)
                if error.kind() == ErrorKind::Lost
                    && answer.was_in_doubt
                    && u128::from(crowd.opened.now_micros()) >= kept_until => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn release(&self, permit: &Permit, retention: Duration) -> Result<()> {
        let (name, fence) = (permit.key().name(), permit.fence());
        let (now, kept_micros) = (self.crowd.opened.now_micros(), retention.as_micros());
        let line = format!("releasing {name} {fence} {now} {kept_micros}");
        // A released record has no fence; its reason can say under which one it was given up.
        let reason = fence.to_string();
        let answer = self.crowd.asker.ask(&line, || permit.release(&reason)).await;
        match answer.value? {
            ReleaseAnswer::Released => say::line(format_args!("released {name} {fence}")),
            // An earlier try whose reply was lost has released it; another may run by now.
            ReleaseAnswer::NotHolding if answer.was_in_doubt => {}
            ReleaseAnswer::NotHolding => {
                say::wrong(&format_args!("{name} {fence} was lost before its release"));
            }
        }
        Ok(())
    }
}

fn replayed(replay: &Replay, asked: &Left) {
    let (name, permit_id) = (asked.key.name(), asked.permit_id.get());
    let State::Done(done) = &replay.record().state else {
        return say::wrong(&format_args!("{name} was replayed and is not done"));
    };
    let outcome = payload::read(replay.outcome());
    say::line(format_args!("replayed {name} {permit_id:x} {} {outcome}", done.grant.fence.get()));
}
