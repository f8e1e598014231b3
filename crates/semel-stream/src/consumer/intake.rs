//! What a source has to say, and what becomes of it.

use std::sync::Arc;

use semel::record::Record;
use semel::{Error, ErrorKind, Fingerprint, Key, Result};

use super::desk::{Answer, Ask, Start};
use super::frontier::Frontier;
use super::jobs::{Job, JobId, Placed, Stage};
use super::running::{Errand, Running};
use super::tools::is_outage;
use super::watch::Step;
use crate::event::Event;
use crate::event_id::EventId;
use crate::key::{KeyFault, OnMissingKey};
use crate::offset::Reader;
use crate::source::{Delivery, Fetched};

impl Running<'_> {
    pub(super) fn answered(&mut self, answer: Answer) {
        if !matches!(answer, Answer::Unanswered(..)) {
            self.desk.recovered();
        }
        match answer {
            Answer::Interrupted | Answer::Started => {}
            Answer::Fetched(Fetched::Deliveries(deliveries)) => self.take_in(deliveries),
            Answer::Fetched(Fetched::Assigned(streams)) => self.assigned(&streams),
            Answer::Fetched(Fetched::Revoked(streams)) => {
                for stream in &streams {
                    self.streams.drop(stream);
                }
            }
            Answer::Fetched(Fetched::End) => self.source_ended = true,
            Answer::Acknowledged(events) => self.acknowledged(&events),
            Answer::GivenBack(events) => {
                self.tools.tally.given_back.add(u64::try_from(events.len()).unwrap_or(u64::MAX));
                for placed in &events {
                    self.tools.saw(&Step::GivenBack(placed.at()));
                }
            }
            Answer::Floor(floor) => self.commit_floor(floor),
            Answer::Lag(lag) => self.tools.tally.lag(lag),
            Answer::Unanswered(ask, error) => self.unanswered(ask, error),
        }
    }

    /// The source does not answer: it is left alone for a while, and then asked again.
    fn unanswered(&mut self, ask: Ask, error: Error) {
        if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Corrupt | ErrorKind::Newer) {
            return self.fail(error);
        }
        match ask {
            Ask::Lag => {
                return tracing::debug!(%error, "semel-stream: the source does not say how much is left");
            }
            Ask::Fetch(_) => {}
            Ask::Acknowledge(events) => {
                self.to_acknowledge.splice(0..0, events);
            }
            Ask::GiveBack(events, after) => {
                self.to_give_back.extend(events.into_iter().map(|placed| (placed, after)));
            }
            Ask::Start(start) => self.to_start.push_front(start),
            Ask::Floor => self.shared.is_due = true,
        }
        self.tools.waits_for("the source", &error);
        self.desk.rest(&self.tools);
        if self.is_stopping() {
            self.desk.hurry();
        }
    }

    fn assigned(&mut self, streams: &[Arc<str>]) {
        if !self.streams.are_alone() {
            return;
        }
        // Whoever read it before may have left receipts behind the offset.
        self.suspects_duplicates = true;
        for stream in streams {
            let generation = self.streams.assign(stream);
            let (tools, stream) = (Arc::clone(&self.tools), Arc::clone(stream));
            self.errands.push(Box::pin(async move {
                let reader = tools.patiently("the store", || tools.pipeline.take(&stream)).await;
                Errand::Taken { stream, generation, reader }
            }));
        }
    }

    fn taken(&mut self, name: Arc<str>, generation: u64, reader: Result<Reader>) {
        let Some(stream) = self.streams.current(&name, generation) else { return };
        match reader {
            Ok(reader) => {
                let after = reader.started_at().position;
                tracing::info!(stream = &*name, epoch = reader.epoch(), "semel-stream: reading");
                stream.frontier = Frontier::behind(after);
                stream.reader = Some(reader);
                self.to_start.push_back(Start { stream: name, generation, after });
            }
            Err(error) => self.fail(error),
        }
    }

    fn take_in(&mut self, deliveries: Vec<Delivery>) {
        self.tools.tally.began();
        let is_again =
            deliveries.iter().any(|delivery| delivery.event.deliveries.is_some_and(|times| times > 1));
        let fresh: Vec<_> =
            deliveries.into_iter().filter_map(|delivery| self.take_in_one(delivery)).collect();
        if fresh.len() < 2 || !(is_again || self.suspects_duplicates) {
            return fresh.into_iter().for_each(|(id, _)| self.jobs.admit(id));
        }
        // A look costs less than a claim that turns out to be a duplicate's.
        let (ids, keys): (Vec<JobId>, Vec<Key>) = fresh.into_iter().unzip();
        let tools = Arc::clone(&self.tools);
        self.errands.push(Box::pin(async move {
            let records = tools.patiently("the store", || tools.pipeline.semel().get_all(&keys)).await;
            Errand::Looked(ids, records)
        }));
    }

    /// Puts one delivery in its place. A job that may have a receipt already comes back, with the receipt's key.
    fn take_in_one(&mut self, Delivery { event, tag }: Delivery) -> Option<(JobId, Key)> {
        let generation = self.delivered(&event)?;
        self.tools.tally.delivered.one();
        let keyed = self.keyed(&event);
        let key = keyed.as_ref().ok().map(|(key, _)| Arc::clone(key));
        let placed = Placed {
            stream: Arc::clone(&event.stream),
            generation,
            position: event.position,
            tag,
            key,
            id: event.id.clone(),
        };
        self.tools.saw(&Step::Delivered(placed.at()));
        let fingerprint = self.choices.compares_payloads.then(|| Fingerprint::of_parts([&event.payload]));
        let (key, receipt, refused) = match keyed {
            Ok((key, receipt)) => {
                if let Some(twin) = self.jobs.twin(&key, fingerprint) {
                    twin.deliveries.push(placed);
                    return None;
                }
                (key, Some(receipt), None)
            }
            Err(fault) => match self.choices.on_missing_key {
                OnMissingKey::Stop => {
                    self.let_go_of(placed);
                    self.fail(missing_key(&event, &fault));
                    return None;
                }
                OnMissingKey::DeadLetter => {
                    (EventId::by_place(&event).name().into(), None, Some(fault.to_string()))
                }
                OnMissingKey::Unprotected => (EventId::by_place(&event).name().into(), None, None),
            },
        };
        let lane = self.choices.order.lane(&event);
        let looked_for = receipt.clone();
        let job = Job {
            event: Arc::new(event),
            key,
            has_key: receipt.is_some(),
            receipt,
            requeue: None,
            fingerprint,
            refused,
            lane,
            deliveries: vec![placed],
            failures: 0,
            waits: 0,
            stage: Stage::Looked,
        };
        let id = self.jobs.add(job);
        if looked_for.is_none() {
            self.jobs.admit(id);
        }
        looked_for.map(|receipt| (id, receipt))
    }

    /// Notes that an event was delivered, before anything else; `None` if its stream is not this consumer's.
    fn delivered(&mut self, event: &Event) -> Option<u64> {
        if !self.streams.are_alone() {
            return Some(0);
        }
        let Some(stream) = self.streams.get_mut(&event.stream).filter(|stream| stream.reader.is_some())
        else {
            tracing::debug!(stream = &*event.stream, "semel-stream: another consumer's event is passed over");
            return None;
        };
        if let Some(position) = event.position {
            stream.frontier.deliver(position);
        }
        Some(stream.generation)
    }

    /// The key of an event, and of its receipt.
    fn keyed(&self, event: &Event) -> std::result::Result<(Arc<str>, Key), KeyFault> {
        let key = self.choices.key.of(event)?;
        match self.tools.pipeline.receipt_key(&key) {
            Ok(receipt) => Ok((key.into(), receipt)),
            Err(_) => Err(KeyFault::Unfit("what it says there is too long for a key, or no text")),
        }
    }

    pub(super) fn errand_done(&mut self, errand: Errand) {
        match errand {
            Errand::Looked(ids, Ok(records)) => self.looked(&ids, &records),
            Errand::Looked(_, Err(error)) => self.fail(error),
            Errand::Taken { stream, generation, reader } => self.taken(stream, generation, reader),
            Errand::Requeues { settled, found } => self.requeues_found(settled, found),
            Errand::Committed { stream, generation, position, commit } => {
                self.committed(&stream, generation, position, commit);
            }
            Errand::CommittedShared { stream, position, commit } => {
                self.committed_shared(&stream, position, commit);
            }
        }
    }

    fn looked(&mut self, ids: &[JobId], records: &[Result<Option<Record>>]) {
        let mut found = false;
        for (id, record) in ids.iter().zip(records) {
            let Some(job) = self.jobs.get(*id) else { continue };
            // Another payload under the same key is for the claim to find: it counts it.
            // A record that cannot be read is for the claim to report, and holds up no other event.
            let is_done = record.as_ref().is_ok_and(|record| {
                record.as_ref().is_some_and(|record| {
                    record.outcome().is_some()
                        && (job.fingerprint.is_none()
                            || record.fingerprint.is_none_or(|first| Some(first) == job.fingerprint))
                })
            });
            if is_done {
                found = true;
                job.deliveries.iter().for_each(|placed| self.tools.saw(&Step::Duplicate(placed.at())));
                self.settle_duplicate(*id);
            } else {
                self.jobs.admit(*id);
            }
        }
        self.suspects_duplicates = found;
    }
}

fn missing_key(event: &Event, fault: &KeyFault) -> Error {
    let position = event.position.map(|position| format!(" at {position}")).unwrap_or_default();
    let message = format!(
        "an event of {}{position} has no key ({fault}); name where its key is, or choose what becomes of such events",
        event.stream
    );
    Error::new(ErrorKind::Invalid, message)
}

/// Whether a task that ended with this error left its event to be tried again.
pub(super) fn is_worth_another_try(error: &Error) -> bool {
    is_outage(error) || error.kind() == ErrorKind::Lost
}
