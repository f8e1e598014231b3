//! What an attempt's end means for its event, its stream and its source.

use std::time::Duration;

use semel::{Error, ErrorKind, Result};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::choices::{OnBusy, OnHeld};
use super::claiming::panicked;
use super::intake::is_worth_another_try;
use super::jobs::{Job, JobId, Placed};
use super::requeues::IsHeld;
use super::running::Running;
use super::watch::{At, Step};
use super::work::Worked;
use crate::dead_letter::DeadLetter;
use crate::failure::Failure;

/// How soon to look again whether somebody else is done with an event.
const BUSY: Backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_secs(1) };

impl Running<'_> {
    pub(super) fn settle(&mut self, id: JobId, worked: Result<Worked>) {
        match worked {
            Ok(Worked::Ran { .. }) => {
                self.tools.tally.ran.one();
                self.done(id);
            }
            Ok(Worked::OffsetToo { .. }) => {
                self.tools.tally.ran.one();
                let first = self.done(id);
                if let Some(Placed { stream, generation, position: Some(position), .. }) = first {
                    self.moved(&stream, generation, position);
                }
            }
            Ok(Worked::Duplicate) => {
                self.suspects_duplicates = true;
                self.settle_duplicate(id);
            }
            Ok(Worked::PutAside { attempts, error }) => self.put_aside(id, attempts, &error),
            Ok(Worked::Failed { attempt, failure }) => self.failed(id, attempt, failure),
            Ok(Worked::Busy(retry_after)) => self.busy(id, retry_after),
            Ok(Worked::Held(reason)) => self.held(id, &reason),
            Ok(Worked::Fenced) => {
                let first = self.jobs.get(id).and_then(|job| job.deliveries.first().cloned());
                if let Some(Placed { stream, generation, .. }) = first {
                    self.fenced(&stream, generation);
                }
                // It may have been delivered in another stream, too.
                self.wait(id, Duration::ZERO);
            }
            // Put aside before it comes here.
            Ok(Worked::Mismatch) => self.put_aside(id, 0, "another payload was processed under its key"),
            Err(error) if is_worth_another_try(&error) => {
                self.tools.waits_for("the event's end", &error);
                let waits = self.waited(id);
                self.wait(id, self.tools.backoff.after(waits));
            }
            Err(error) => {
                self.wait(id, Duration::ZERO);
                self.fail(error);
            }
        }
    }

    /// A handler that panicked has proved nothing: its permit stays as it is, and the lease decides.
    pub(super) fn settle_panic(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.failures = job.failures.saturating_add(1);
        let (failures, failure) = (job.failures, panicked());
        tracing::error!(stream = &*job.event.stream, "semel-stream: a handler panicked");
        let at = At::of(&job.event, job.has_key.then_some(&*job.key));
        self.tools.saw(&Step::Failed { at, attempt: failures, error: failure.reason() });
        self.tools.tally.retries.one();
        self.wait(id, self.tools.backoff.after(failures));
    }

    pub(super) fn settle_duplicate(&mut self, id: JobId) {
        if self.jobs.get(id).is_some_and(|job| job.requeue.is_some()) {
            // Another consumer has processed it: nothing was delivered here.
            self.tools.tally.requeue_given_up();
        } else {
            self.tools.tally.duplicates.one();
        }
        self.done(id);
    }

    fn put_aside(&mut self, id: JobId, attempts: u32, error: &str) {
        self.tools.tally.dead_letters.one();
        if let Some(job) = self.jobs.get(id) {
            tracing::warn!(
                pipeline = self.tools.pipeline.name(),
                stream = &*job.event.stream,
                position = job.event.position.map(tracing::field::display),
                key = %job.short(),
                attempts,
                error,
                payload_kept = DeadLetter::fits(&job.event, self.tools.dead_letter_bytes_max),
                "semel-stream: a dead letter"
            );
        }
        self.done(id);
    }

    fn failed(&mut self, id: JobId, attempt: u32, failure: Failure) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.failures = job.failures.saturating_add(1);
        job.waits = 0;
        let stream = job.event.stream.clone();
        if let Failure::Stop(reason) = failure {
            self.wait(id, Duration::ZERO);
            let message = format!("a handler of {stream} asked to stop: {reason}; mend it and start again");
            return self.fail(Error::new(ErrorKind::Invalid, message));
        }
        self.tools.tally.retries.one();
        self.wait(id, self.tools.backoff.after(attempt));
    }

    fn busy(&mut self, id: JobId, retry_after: Duration) {
        if self.put_off_requeue(id, IsHeld::No) {
            return;
        }
        let waits = self.waited(id);
        match self.choices.on_busy {
            OnBusy::GiveBack if !self.is_in_order(id) => self.give_back(id),
            OnBusy::Wait | OnBusy::GiveBack => {
                self.wait(id, BUSY.after(waits).min(retry_after).max(Duration::from_millis(1)));
            }
        }
    }

    fn held(&mut self, id: JobId, reason: &str) {
        if self.put_off_requeue(id, IsHeld::Yes) {
            return;
        }
        let waits = self.waited(id);
        match self.choices.on_held {
            OnHeld::GiveBack if !self.is_in_order(id) => self.give_back(id),
            OnHeld::Wait | OnHeld::GiveBack => self.wait(id, self.tools.backoff.after(waits)),
            OnHeld::Stop => {
                let stream = self.jobs.get(id).map(|job| job.event.stream.clone()).unwrap_or_default();
                self.wait(id, Duration::ZERO);
                let message = format!(
                    "an event of {stream} is held ({reason}); look at it, resolve it, and start again"
                );
                self.fail(Error::new(ErrorKind::Invalid, message));
            }
        }
    }

    /// Whether another event may stand behind it.
    fn is_in_order(&self, id: JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| job.lane.is_some())
    }

    /// How often in a row it had to wait now.
    fn waited(&mut self, id: JobId) -> u32 {
        let Some(job) = self.jobs.get_mut(id) else { return 1 };
        job.waits = job.waits.saturating_add(1);
        job.waits
    }

    fn wait(&mut self, id: JobId, long: Duration) {
        let now = Instant::now();
        self.jobs.wait(id, now.checked_add(long).unwrap_or(now));
    }

    /// Its event has a receipt, or needs none: the first delivery comes back, the others were duplicates.
    fn done(&mut self, id: JobId) -> Option<Placed> {
        let Job { deliveries, requeue, .. } = self.jobs.remove(id)?;
        self.tools.tally.ended();
        if let Some(requeue) = requeue {
            self.requeues.settle(requeue);
        }
        let more = deliveries.len().saturating_sub(1);
        self.tools.tally.duplicates.add(u64::try_from(more).unwrap_or(u64::MAX));
        let first = deliveries.first().cloned();
        for placed in deliveries {
            self.done_with(placed);
        }
        first
    }

    /// A delivery counts as processed: where there is an offset it waits for that, elsewhere it is acknowledged.
    fn done_with(&mut self, placed: Placed) {
        if !self.streams.are_alone() {
            return self.to_acknowledge.push(placed);
        }
        let Some(stream) = self.streams.current(&placed.stream, placed.generation) else { return };
        let passed_before = match placed.position {
            Some(position) => stream.frontier.done(position, placed),
            None => Some(placed),
        };
        self.to_acknowledge.extend(passed_before);
    }

    /// Back to the source. Only the source knows how often that was: an event that comes back is a new one here.
    fn give_back(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(id) else { return };
        let backoff = self.tools.backoff;
        let after = match job.event.deliveries {
            Some(times) => backoff.after(u32::try_from(times).unwrap_or(u32::MAX)),
            None => backoff.most.min(BUSY.most),
        };
        let current = job.deliveries.into_iter().filter(|placed| self.streams.is_current(placed));
        self.to_give_back.extend(current.map(|placed| (placed, after)));
    }

    /// Nothing more is begun: those who share the stream get the rest at once.
    pub(super) fn let_go_of_idle(&mut self) {
        self.desk.hurry();
        self.desk.interrupt();
        for id in self.jobs.idle() {
            // A requeue stays in the list, for whoever consumes next.
            if self.put_off_requeue(id, IsHeld::No) {
                continue;
            }
            let Some(job) = self.jobs.remove(id) else { continue };
            job.deliveries.into_iter().for_each(|placed| self.let_go_of(placed));
        }
    }

    pub(super) fn let_go_of(&mut self, placed: Placed) {
        if !self.streams.are_alone() {
            self.to_give_back.push((placed, Duration::ZERO));
        }
    }
}
