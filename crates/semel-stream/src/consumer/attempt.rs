//! One attempt at one event, in a task of its own.

use std::sync::Arc;

use semel::{Fingerprint, Result};

use super::tools::Tools;
use super::watch::{At, Step};
use super::work::{Task, Work, Worked};
use crate::dead_letter::DeadLetter;
use crate::event::Event;
use crate::offset::Reader;

/// What one attempt needs.
pub(super) struct Attempt {
    pub(super) event: Arc<Event>,
    pub(super) key: Arc<str>,
    pub(super) is_unprotected: bool,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) refused: Option<String>,
    pub(super) reader: Option<Reader>,
    pub(super) failures: u32,
}

impl Attempt {
    pub(super) async fn made(self, work: Arc<dyn Work>, tools: Arc<Tools>) -> Result<Worked> {
        let worked = match &self.refused {
            Some(why) => self.put_aside(&tools, why).await?,
            None => work.work(self.task(&tools)).await?,
        };
        let worked = if worked == Worked::Mismatch {
            // Its record is the other payload's receipt: there is none to write for this one.
            self.put_aside(&tools, "another payload was processed under its key").await?
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
            is_unprotected: self.is_unprotected,
            reader: self.reader.as_ref(),
            attempts_max: tools.attempts_max,
            failures: self.failures,
            fingerprint: self.fingerprint,
            tools,
        }
    }

    /// Hands an event over that was never tried.
    async fn put_aside(&self, tools: &Tools, error: &str) -> Result<Worked> {
        let key = (!self.is_unprotected).then(|| (&*self.key).into());
        let error = error.to_owned();
        let letter = DeadLetter { event: Arc::clone(&self.event), key, attempts: 0, error: error.clone() };
        tools.put_aside(letter).await?;
        Ok(Worked::PutAside { attempts: 0, error })
    }

    /// Says what happened right when it did: before the loop hears of it.
    fn tell(&self, tools: &Tools, worked: &Worked) {
        let at = At::of(&self.event, (!self.is_unprotected).then_some(&*self.key));
        match worked {
            Worked::Ran { .. } | Worked::OffsetToo { .. } => tools.saw(&Step::Receipt(at)),
            Worked::Duplicate => tools.saw(&Step::Duplicate(at)),
            Worked::Busy(_) => tools.saw(&Step::Busy(at)),
            Worked::Held(_) => tools.saw(&Step::Held(at)),
            Worked::Failed { attempt, failure } => {
                tools.saw(&Step::Failed { at, attempt: *attempt, error: failure.reason() });
            }
            Worked::PutAside { attempts, error } => {
                tools.saw(&Step::DeadLetter { at, attempts: *attempts, error });
            }
            Worked::Mismatch | Worked::Fenced => {}
        }
    }
}
