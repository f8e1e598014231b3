//! What a process does with its life: claim, run, and everything that can go wrong meanwhile.

use std::sync::Arc;
use std::time::Duration;

use semel::record::PermitId;
use semel::{Claim, Decision, ErrorKind, Fingerprint, Key, Outcome, Permit, RecordId, Semel};
use tokio::time::sleep;

use super::judge::Testimony;
use super::witness::Resource;
use super::witness::Trace;
use super::world::{Dice, Plan};

/// One process: an engine of its own, and what it says it saw.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) semel: Semel,
    pub(super) plan: Arc<Plan>,
    pub(super) dice: Dice,
    pub(super) resource: Resource,
    pub(super) trace: Trace,
    pub(super) testimony: Testimony,
}

/// How a run ends.
enum Ending {
    Complete,
    Release,
    Crash,
}

impl Process {
    pub(super) async fn live(self) {
        for job in 0..self.plan.jobs {
            sleep(self.dice.span(Duration::ZERO, self.plan.lease)).await;
            let Some(key) = self.dice.pick(&self.plan.keys).cloned() else { return };
            self.job(job, &key).await;
        }
    }

    async fn job(&self, job: u64, key: &Key) {
        let claim = self.claim(key);
        if self.dice.happens(self.plan.percent.hang_up) {
            // The caller goes away while it waits for the answer.
            let patience = self.dice.span(Duration::ZERO, Duration::from_millis(30));
            if let Ok(decision) = tokio::time::timeout(patience, self.semel.claim(claim)).await {
                self.decided(job, key, decision).await;
            } else {
                self.trace.tell(&self.name, "hung up on a claim");
            }
            return;
        }
        let decision = self.semel.claim(claim).await;
        self.decided(job, key, decision).await;
    }

    fn claim(&self, key: &Key) -> Claim {
        let request = if self.dice.happens(self.plan.percent.mismatch) { "other" } else { "first" };
        let claim = Claim::new(key).fingerprint(Fingerprint::of_parts([request]));
        if self.dice.happens(20) { claim.wait_up_to(self.plan.lease) } else { claim }
    }

    async fn decided(&self, job: u64, key: &Key, decision: semel::Result<Decision>) {
        match decision {
            Ok(Decision::Run(permit)) => {
                self.testimony.granted(key.id(), permit.id(), permit.fence());
                self.tell(key.id(), &format!("runs, attempt {} fence {}", permit.attempt(), permit.fence()));
                self.run(job, &permit).await;
            }
            Ok(Decision::Replay(replay)) => {
                self.testimony.replayed(key.id(), replay.outcome(), replay.record());
                self.tell(key.id(), "replays");
            }
            Ok(other) => self.tell(key.id(), other.as_str()),
            Err(error) => self.tell(key.id(), &format!("{:?}", error.kind())),
        }
    }

    async fn run(&self, job: u64, permit: &Permit) {
        let heartbeat = self.dice.happens(60).then(|| permit.heartbeat());
        for _ in 0..self.dice.number(0, 3) {
            sleep(self.dice.span(Duration::ZERO, self.plan.lease)).await;
            self.write(permit);
        }
        if self.dice.happens(self.plan.percent.pause) {
            // Frozen for longer than the lease: nothing of it runs, its heartbeat neither.
            drop(heartbeat);
            self.tell(permit.key().id(), "freezes");
            sleep(self.plan.lease.saturating_mul(3)).await;
            self.write(permit);
        }
        match self.ending() {
            Ending::Complete => self.complete(job, permit).await,
            Ending::Release => {
                let released = permit.release("gave up").await;
                self.tell(
                    permit.key().id(),
                    &format!("releases: {:?}", released.map_err(|error| error.kind())),
                );
            }
            Ending::Crash => {
                self.testimony.crashed();
                self.tell(permit.key().id(), "crashes");
            }
        }
    }

    fn ending(&self) -> Ending {
        if self.dice.happens(self.plan.percent.crash) {
            return Ending::Crash;
        }
        if self.dice.happens(self.plan.percent.failure) { Ending::Release } else { Ending::Complete }
    }

    fn write(&self, permit: &Permit) {
        let taken = self.resource.write(permit.key().id(), permit.fence());
        self.tell(permit.key().id(), if taken { "writes" } else { "is fenced off" });
    }

    async fn complete(&self, job: u64, permit: &Permit) {
        let outcome = Outcome::success(format!("{} job {job}", self.name).into_bytes());
        let (id, permit_id): (RecordId, PermitId) = (permit.key().id(), permit.id());
        match permit.complete(outcome.clone()).await {
            Ok(()) => {
                self.testimony.completed(id, permit_id, outcome);
                self.tell(id, "completes");
            }
            Err(error) => {
                if error.kind() == ErrorKind::Lost {
                    self.testimony.lost();
                }
                self.tell(id, &format!("does not complete: {:?}", error.kind()));
            }
        }
    }

    fn tell(&self, id: RecordId, what: &str) {
        self.trace.tell(&self.name, &format!("{} {what}", id.short()));
    }
}
