//! One attempt at one event, in a task of its own.

use std::sync::Arc;

use semel::{Fingerprint, Key, OnOutage, Result};

use super::tools::Tools;
use super::watch::{At, Step};
use super::work::{Task, Work, Worked};
use crate::dead_letter::DeadLetter;
use crate::event::Event;
use crate::event_id::EventId;
use crate::offset::Reader;

/// What one attempt needs.
pub(super) struct Attempt {
    pub(super) event: Arc<Event>,
    pub(super) key: Arc<str>,
    pub(super) has_key: bool,
    /// Under which key the run is recorded; `None` where it is not.
    pub(super) record: Option<Key>,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) refused: Option<String>,
    pub(super) reader: Option<Reader>,
    pub(super) failures: u32,
}

impl Attempt {
    pub(super) async fn made(self, work: Arc<dyn Work>, tools: Arc<Tools>) -> Result<Worked> {
        let worked = match &self.refused {
            Some(why) => self.put_aside(&tools, EventId::Keyless((&*self.key).into()), why).await?,
            None => work.work(self.task(&tools)).await?,
        };
        let worked = if worked == Worked::Mismatch {
            // The record of its key is the other payload's receipt.
            let place = EventId::by_place(&self.event);
            self.put_aside(&tools, place, "another payload was processed under its key").await?
        } else {
            worked
        };
        self.tell(&tools, &worked);
        Ok(worked)
    }

    fn task<'a>(&'a self, tools: &'a Tools) -> Task<'a> {
        Task {
            pipeline: &tools.pipeline,
            event: &self.event,
            key: &self.key,
            is_unprotected: self.record.is_none(),
            has_key: self.has_key,
            record: self.record.as_ref(),
            reader: self.reader.as_ref(),
            attempts_max: tools.attempts_max,
            failures: self.failures,
            fingerprint: self.fingerprint,
            tools,
        }
    }

    /// Hands an event over that was never tried, and writes its record under its place: it has no key, or another's.
    async fn put_aside(&self, tools: &Tools, place: EventId, error: &str) -> Result<Worked> {
        let (pipeline, semel) = (&tools.pipeline, tools.pipeline.semel());
        if semel.get(&pipeline.run_key(&place, 0)?).await?.is_some() {
            return Ok(Worked::Duplicate);
        }
        let key = self.has_key.then(|| (&*self.key).into());
        let error = error.to_owned();
        let letter = DeadLetter { event: Arc::clone(&self.event), key, attempts: 0, error: error.clone() };
        let outcome = letter.outcome(tools.dead_letter_bytes_max);
        tools.put_aside(letter).await?;
        // Nothing runs under this key: whatever is there by now is another consumer's record of the same event.
        let claim = pipeline.claim_of_run(&place, 0)?.on_outage(OnOutage::Closed);
        semel.record_once(claim, outcome).await.map(drop)?;
        Ok(Worked::PutAside { attempts: 0, error })
    }

    /// Says what happened right when it did: before the loop hears of it.
    fn tell(&self, tools: &Tools, worked: &Worked) {
        let at = At::of(&self.event, self.has_key.then_some(&*self.key));
        match worked {
            Worked::Ran { .. } | Worked::OffsetToo { .. } => tools.saw(&Step::Receipt(at)),
            Worked::Duplicate => tools.saw(&Step::Duplicate(at)),
            Worked::Busy(_) => tools.saw(&Step::Busy(at)),
            Worked::Held(_) => tools.saw(&Step::Held(at)),
            Worked::Failed { attempt, failure } => {
                tools.saw(&Step::Failed { at, attempt: *attempt, error: failure.reason() });
            }
            Worked::PutAside { attempts, error } => {
                let is_payload_kept = DeadLetter::fits(&self.event, tools.dead_letter_bytes_max);
                tools.saw(&Step::DeadLetter { at, attempts: *attempts, error, is_payload_kept });
            }
            Worked::Mismatch | Worked::Fenced => {}
        }
    }
}
