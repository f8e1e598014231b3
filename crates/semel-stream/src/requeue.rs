//! Dead letters that are sent back: written into the store, and found there by whoever consumes the pipeline.
//!
//! The receipt of a dead letter is done, and stays as it is. A requeue is one more run of the event under a key of its own,
//! which holds the event and the number of the requeue; it waits in the pipeline's list until a consumer has settled it.

use semel::machine::waiting::{Change, Changed, Waiting, read};
use semel::{Error, ErrorKind, Key, Result};

use crate::dead_letter::KeptLetter;
use crate::event_id::EventId;
use crate::pipeline::Pipeline;
use crate::statistics::{EventRecord, EventState};

/// The operation of the list of what waits.
const REQUEUES: &str = "requeues";
/// The name of the list of what waits.
const WAITING: &str = "waiting";

/// A dead letter that is to be sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequeueAsk {
    /// Which event.
    pub event: EventId,
    /// Only if it was requeued so often before; any number if `None`.
    pub requeues_before: Option<u32>,
}

/// What becomes of a dead letter that is to be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// It waits for a consumer, which processes it again.
    Requeued {
        /// The number of the requeue, from 1 on.
        number: u32,
    },
    /// It was requeued before and still waits. Nothing was changed.
    AlreadyWaiting {
        /// The number of that requeue.
        number: u32,
    },
    /// It is no dead letter, or no longer one. Nothing was changed.
    NotDead(EventState),
    /// Its payload is not kept, so no consumer could process it. Nothing was changed.
    NotKept,
    /// It was requeued meanwhile. Nothing was changed.
    Changed,
    /// As many wait as may. Nothing was changed.
    Full,
    /// The pipeline knows no such event. Nothing was changed.
    Unknown,
}

impl EventRecord {
    /// What is kept of it, if it is a dead letter.
    pub fn letter(&self) -> Option<KeptLetter> {
        self.outcome.as_ref().filter(|_| self.state == EventState::DeadLetter).and_then(KeptLetter::read)
    }

    /// What a requeue of this event would be answered with.
    pub fn requeue_answer(&self) -> Requeue {
        let number = self.requeue.saturating_add(1);
        if self.state != EventState::DeadLetter {
            return Requeue::NotDead(self.state);
        }
        if self.is_waiting {
            return Requeue::AlreadyWaiting { number };
        }
        match self.letter().and_then(|letter| letter.event()) {
            Some(_) => Requeue::Requeued { number },
            None => Requeue::NotKept,
        }
    }
}

impl Pipeline {
    /// Sends dead letters back: each waits until a consumer of this pipeline takes it up. One answer for each, in their order.
    pub async fn requeue(&self, asks: &[RequeueAsk]) -> Result<Vec<Requeue>> {
        let ids: Vec<EventId> = asks.iter().map(|ask| ask.event.clone()).collect();
        let found = self.events(&ids).await?;
        let mut answers = Vec::with_capacity(asks.len());
        for (ask, event) in asks.iter().zip(found) {
            answers.push(match event? {
                None => Requeue::Unknown,
                Some(event) if ask.requeues_before.is_some_and(|before| before != event.requeue) => {
                    Requeue::Changed
                }
                Some(event) => event.requeue_answer(),
            });
        }
        let wanted: Vec<Waiting> =
            asks.iter().zip(&answers).filter_map(|(ask, answer)| waiting(&ask.event, *answer)).collect();
        if wanted.is_empty() {
            return Ok(answers);
        }
        let list = self.change_waiting(Change::Add(wanted)).await?;
        for (ask, answer) in asks.iter().zip(&mut answers) {
            if waiting(&ask.event, *answer).is_some_and(|waiting| !list.contains(&waiting)) {
                *answer = Requeue::Full;
            }
        }
        Ok(answers)
    }

    /// Requeues that no consumer has settled yet, oldest first: one load.
    pub async fn waiting(&self) -> Result<Vec<Waiting>> {
        let key = self.waiting_key()?;
        match self.semel().get(&key).await? {
            None => Ok(Vec::new()),
            Some(record) => read(&record).ok_or_else(|| no_list(&key)),
        }
    }

    /// These are settled, and wait no longer. What still waits.
    pub(crate) async fn settled(&self, requeues: Vec<Waiting>) -> Result<Vec<Waiting>> {
        self.change_waiting(Change::Remove(requeues)).await
    }

    async fn change_waiting(&self, change: Change) -> Result<Vec<Waiting>> {
        let key = self.waiting_key()?;
        match self.semel().change_waiting(&key, change).await? {
            Changed::Waiting(list) => Ok(list),
            Changed::NoList => Err(no_list(&key)),
        }
    }

    fn waiting_key(&self) -> Result<Key> {
        self.key(REQUEUES, WAITING)
    }
}

/// What waits for this event, if it is to be requeued.
fn waiting(event: &EventId, answer: Requeue) -> Option<Waiting> {
    let Requeue::Requeued { number } = answer else { return None };
    Some(Waiting { operation: event.operation(number).into(), name: event.name().into() })
}

fn no_list(key: &Key) -> Error {
    let message = format!("the record of {key:?} is no list of requeues; use another name for the pipeline");
    Error::new(ErrorKind::Corrupt, message)
}
