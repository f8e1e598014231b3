//! Dead letters that were sent back: looked for in the store once a second, and processed beside what the source delivers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use semel::machine::waiting::Waiting;
use semel::{Key, Result};
use tokio::time::Instant;

use super::jobs::{Job, JobId, Stage};
use super::running::{Errand, Running};
use super::tools::{Tools, is_outage};
use super::watch::{At, Step};
use crate::dead_letter::KeptLetter;
use crate::event::Event;
use crate::event_id::EventId;
use crate::pipeline::Pipeline;

/// How often the list is read: one load.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a requeue is left alone that another consumer is processing.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// How long a requeue is left alone that is held, or that cannot be read.
const HELD_PAUSE: Duration = Duration::from_secs(30);

/// What this consumer knows of the requeues of its pipeline.
pub(super) struct Requeues {
    look_at: Instant,
    is_looking: bool,
    /// Whether the list was read since the consumer started, and nothing of it was left to take up.
    is_worked_off: bool,
    in_hand: HashSet<Waiting>,
    /// Settled here, and still in the list.
    settled: Vec<Waiting>,
    put_off: HashMap<Waiting, Instant>,
}

/// What a look at the list found.
pub(super) struct Found {
    requeues: Vec<(Waiting, Letter)>,
    /// Whether more waits than was asked for.
    has_more: bool,
}

/// The dead letter behind a requeue.
enum Letter {
    Kept(Arc<Event>, EventId, Key),
    /// There is nothing to process any more: why.
    Gone(&'static str),
    Unreadable,
}

impl Requeues {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            look_at: now,
            is_looking: false,
            is_worked_off: false,
            in_hand: HashSet::new(),
            settled: Vec::new(),
            put_off: HashMap::new(),
        }
    }

    /// Whether there is nothing to process and nothing to write, as far as is known.
    pub(super) fn is_worked_off(&self) -> bool {
        self.is_worked_off && self.is_written()
    }

    /// Whether the list says what was settled here.
    pub(super) fn is_written(&self) -> bool {
        !self.is_looking && self.settled.is_empty()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        (!self.is_looking).then_some(self.look_at)
    }

    /// It has a receipt: the list need not name it any longer.
    pub(super) fn settle(&mut self, requeue: Waiting) {
        self.in_hand.remove(&requeue);
        self.settled.push(requeue);
        // Whatever waits behind it may be taken up now.
        (self.look_at, self.is_worked_off) = (Instant::now(), false);
    }

    /// It stays in the list, for whoever looks next.
    fn put_off(&mut self, requeue: Waiting, pause: Duration) {
        self.in_hand.remove(&requeue);
        let now = Instant::now();
        self.put_off.retain(|_, until| *until > now);
        self.put_off.insert(requeue, now.checked_add(pause).unwrap_or(now));
    }
}

impl Running<'_> {
    /// Reads the list if it is time, or writes what was settled.
    pub(super) fn look_for_requeues(&mut self, now: Instant) {
        let requeues = &mut self.requeues;
        let is_last = self.error.is_some() || self.tools.control.is_stopping();
        if requeues.is_looking || requeues.look_at > now || (is_last && requeues.settled.is_empty()) {
            return;
        }
        // Half of what may run at once: what the source delivers goes on meanwhile.
        let room = self.choices.parallel.div_ceil(2).saturating_sub(requeues.in_hand.len());
        let room = if is_last { 0 } else { room };
        let put_off = requeues.put_off.iter().filter(|(_, until)| **until > now).map(|(requeue, _)| requeue);
        let left_out = requeues.in_hand.iter().chain(put_off).cloned().collect();
        requeues.is_looking = true;
        let (tools, settled) = (Arc::clone(&self.tools), std::mem::take(&mut requeues.settled));
        self.errands.push(Box::pin(async move {
            let found = look(&tools.pipeline, &settled, &left_out, room).await;
            Errand::Requeues { settled, found }
        }));
    }

    pub(super) fn requeues_found(&mut self, settled: Vec<Waiting>, found: Result<Found>) {
        let now = Instant::now();
        self.requeues.is_looking = false;
        self.requeues.look_at = now.checked_add(LOOK_EVERY).unwrap_or(now);
        match found {
            Ok(Found { requeues, has_more }) => {
                self.requeues.is_worked_off = requeues.is_empty() && !has_more;
                for (requeue, letter) in requeues {
                    self.take_up(requeue, letter);
                }
            }
            Err(error) => {
                self.tools.waits_for("the list of requeues", &error);
                // What nobody can mend by waiting must not keep a consumer from its end.
                self.requeues.is_worked_off = !is_outage(&error);
                if is_outage(&error) {
                    self.requeues.settled.splice(0..0, settled);
                }
            }
        }
    }

    fn take_up(&mut self, requeue: Waiting, letter: Letter) {
        let (event, id, receipt) = match letter {
            Letter::Kept(event, id, receipt) => (event, id, receipt),
            Letter::Gone(why) => {
                let pipeline = self.tools.pipeline.name();
                tracing::warn!(
                    pipeline,
                    why,
                    "semel-stream: a requeued event cannot be processed; send it anew"
                );
                return self.requeues.settle(requeue);
            }
            Letter::Unreadable => return self.requeues.put_off(requeue, HELD_PAUSE),
        };
        if self.is_stopping() {
            return;
        }
        self.tools.tally.requeue_begins();
        self.tools.saw(&Step::Requeued(At::of(&event, id.has_key().then(|| id.name()))));
        self.requeues.in_hand.insert(requeue.clone());
        let job = Job {
            event,
            key: id.name().into(),
            has_key: id.has_key(),
            receipt: Some(receipt),
            requeue: Some(requeue),
            fingerprint: None,
            refused: None,
            // It was overtaken long ago: there is no order to keep.
            lane: None,
            deliveries: Vec::new(),
            failures: 0,
            waits: 0,
            stage: Stage::Looked,
        };
        let id = self.jobs.add(job);
        self.jobs.admit(id);
    }

    /// Another consumer processes it, or it is held: it stays in the list. `false` if the job is no requeue.
    pub(super) fn put_off_requeue(&mut self, id: JobId, is_held: IsHeld) -> bool {
        let Some(requeue) = self.jobs.get(id).and_then(|job| job.requeue.clone()) else { return false };
        self.jobs.remove(id);
        self.tools.tally.requeue_given_up();
        let pause = match is_held {
            IsHeld::No => BUSY_PAUSE,
            IsHeld::Yes => HELD_PAUSE,
        };
        self.requeues.put_off(requeue, pause);
        true
    }
}

/// Why a requeue is put off.
#[derive(Clone, Copy)]
pub(super) enum IsHeld {
    Yes,
    No,
}

/// Says what was settled, and takes as many of the others as there is room for, with the events behind them.
async fn look(
    pipeline: &Pipeline,
    settled: &[Waiting],
    left_out: &HashSet<Waiting>,
    room: usize,
) -> Result<Found> {
    let list = match settled {
        [] => pipeline.waiting().await?,
        _ => pipeline.settled(settled.to_vec()).await?,
    };
    let mut open = list.into_iter().filter(|requeue| !left_out.contains(requeue));
    let wanted: Vec<Waiting> = open.by_ref().take(room).collect();
    let has_more = open.next().is_some();
    if wanted.is_empty() {
        return Ok(Found { requeues: Vec::new(), has_more });
    }
    let runs: Vec<_> =
        wanted.iter().map(|requeue| EventId::read(&requeue.operation, &requeue.name)).collect();
    let before =
        runs.iter().flatten().map(|(event, number)| pipeline.run_key(event, number.saturating_sub(1)));
    let mut before = pipeline.semel().get_all(&before.collect::<Result<Vec<_>>>()?).await?.into_iter();
    let mut requeues = Vec::with_capacity(wanted.len());
    for (requeue, run) in wanted.into_iter().zip(runs) {
        let Some((event, number)) = run else {
            requeues.push((requeue, Letter::Gone("it names no event")));
            continue;
        };
        let letter = match before.next() {
            None | Some(Err(_)) => Letter::Unreadable,
            Some(Ok(None)) => Letter::Gone("the retention of its dead letter is over"),
            Some(Ok(Some(record))) => {
                let kept = record.outcome().and_then(KeptLetter::read).and_then(|letter| letter.event());
                match kept {
                    Some(kept) => {
                        Letter::Kept(Arc::new(kept), event.clone(), pipeline.run_key(&event, number)?)
                    }
                    None => Letter::Gone("its payload is not kept"),
                }
            }
        };
        requeues.push((requeue, letter));
    }
    Ok(Found { requeues, has_more })
}

/// Says at the start what will be missed at the end.
pub(super) fn warn_of_lost_payloads(tools: &Tools) {
    if tools.dead_letter_bytes_max == 0 && !tools.has_place_for_letters {
        tracing::warn!(
            pipeline = tools.pipeline.name(),
            "semel-stream: the payloads of dead letters are kept nowhere: set dead_letter_bytes_max above 0, or dead_letters"
        );
    }
}
