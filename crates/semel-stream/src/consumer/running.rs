//! The loop. It waits for everything at once, and for nothing alone: while it acknowledges, handlers run; while a
//! store does not answer, others do.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use semel::machine::offset::Position;
use semel::machine::waiting::Waiting;
use semel::record::Record;
use semel::{Error, Result};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::attempt::Attempt;
use super::builder::Choices;
use super::control::Wanted;
use super::desk::{Answer, Ask, Desk, Start};
use super::jobs::{JobId, Jobs, Placed};
use super::report::Report;
use super::requeues::{Found, Requeues};
use super::streams::Streams;
use super::tools::Tools;
use super::work::{Work, Worked};
use crate::offset::{Commit, Reader};
use crate::source::{Pending, Source};

/// How many events may be in hand for each one in work, however many of them wait for their time.
const IN_HAND_PER_RUNNING: usize = 64;
/// How many events of a stream may be done or running behind one that is not done.
const AHEAD_MAX: usize = 1_000_000;
/// How often the source is asked how much is left.
const LAG_EVERY: Duration = Duration::from_secs(5);
/// How long a consumer that stops tries to tell a source and a store that do not answer what it has done.
const GRACE: Duration = Duration::from_secs(10);

/// A consumer that runs.
pub(super) struct Running<'s> {
    pub(super) choices: Choices,
    pub(super) tools: Arc<Tools>,
    work: Arc<dyn Work>,
    pub(super) desk: Desk<'s>,
    pub(super) jobs: Jobs,
    pub(super) streams: Streams,
    tasks: JoinSet<Result<Worked>>,
    jobs_of_tasks: HashMap<Id, JobId>,
    pub(super) errands: FuturesUnordered<Pin<Box<dyn Future<Output = Errand> + Send>>>,
    pub(super) to_acknowledge: Vec<Placed>,
    pub(super) to_give_back: Vec<(Placed, Duration)>,
    pub(super) to_start: VecDeque<Start>,
    pub(super) shared: SharedOffsets,
    pub(super) requeues: Requeues,
    wanted: watch::Receiver<Wanted>,
    checkpoints_heard: u64,
    checkpoint_at: Option<Instant>,
    lag_at: Instant,
    /// Whether it pays to look for receipts before claiming.
    pub(super) suspects_duplicates: bool,
    pub(super) source_ended: bool,
    has_checkpointed_last: bool,
    grace_until: Option<Instant>,
    pub(super) error: Option<Error>,
}

/// The offsets of streams that many share: the source says how far everybody is.
#[derive(Default)]
pub(super) struct SharedOffsets {
    /// How many events were acknowledged since the source was last asked.
    pub(super) acknowledged: u64,
    pub(super) is_due: bool,
    pub(super) committing: usize,
    pub(super) committed: HashMap<Arc<str>, Position>,
}

/// Something that was asked of the store, with its answer.
pub(super) enum Errand {
    Looked(Vec<JobId>, Result<Vec<Result<Option<Record>>>>),
    Taken { stream: Arc<str>, generation: u64, reader: Result<Reader> },
    Committed { stream: Arc<str>, generation: u64, position: Position, commit: Result<Commit> },
    CommittedShared { stream: Arc<str>, position: Position, commit: Result<Commit> },
    Requeues { settled: Vec<Waiting>, found: Result<Found> },
}

type Joined = std::result::Result<(Id, Result<Worked>), JoinError>;

enum Happened {
    Ended(Joined),
    Errand(Errand),
    Answer(Answer),
    Wanted,
    Time,
}

impl<'s> Running<'s> {
    /// Runs from the first poll on.
    pub(super) fn start(
        source: Box<dyn Source + 's>,
        choices: Choices,
        tools: Tools,
        work: Arc<dyn Work>,
    ) -> Pending<'s, Report> {
        Box::pin(async move { Self::new(source, choices, tools, work).run().await })
    }

    fn new(source: Box<dyn Source + 's>, choices: Choices, tools: Tools, work: Arc<dyn Work>) -> Self {
        let checkpoint_at = choices.checkpoint.interval().and_then(|every| Instant::now().checked_add(every));
        Self {
            streams: Streams::new(source.reads()),
            desk: Desk::new(source),
            wanted: tools.control.hear(),
            tools: Arc::new(tools),
            work,
            choices,
            jobs: Jobs::default(),
            tasks: JoinSet::new(),
            jobs_of_tasks: HashMap::new(),
            errands: FuturesUnordered::new(),
            to_acknowledge: Vec::new(),
            to_give_back: Vec::new(),
            to_start: VecDeque::new(),
            shared: SharedOffsets::default(),
            requeues: Requeues::new(Instant::now()),
            checkpoints_heard: 0,
            checkpoint_at,
            lag_at: Instant::now(),
            suspects_duplicates: true,
            source_ended: false,
            has_checkpointed_last: false,
            grace_until: None,
            error: None,
        }
    }

    async fn run(mut self) -> Result<Report> {
        loop {
            let now = Instant::now();
            self.turn(now);
            if self.is_over() {
                break;
            }
            match self.next(now).await {
                Happened::Ended(ended) => self.ended(ended),
                Happened::Errand(errand) => self.errand_done(errand),
                Happened::Answer(answer) => self.answered(answer),
                Happened::Wanted | Happened::Time => {}
            }
            while let Some(ended) = self.tasks.try_join_next_with_id() {
                self.ended(ended);
            }
        }
        self.desk.close(&self.tools).await;
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.tools.tally.report()),
        }
    }

    async fn next(&mut self, turned_at: Instant) -> Happened {
        let wake_at = self.wake_at(turned_at);
        tokio::select! {
            Some(ended) = self.tasks.join_next_with_id() => Happened::Ended(ended),
            Some(errand) = self.errands.next() => Happened::Errand(errand),
            answer = self.desk.answer() => Happened::Answer(answer),
            Ok(()) = self.wanted.changed() => Happened::Wanted,
            () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => Happened::Time,
        }
    }

    /// Begins whatever can begin now.
    fn turn(&mut self, now: Instant) {
        let wanted = *self.wanted.borrow_and_update();
        self.jobs.wake(now);
        if self.is_stopping() {
            self.let_go_of_idle();
        } else {
            self.dispatch();
        }
        self.look_for_requeues(now);
        if std::mem::replace(&mut self.checkpoints_heard, wanted.checkpoints) != wanted.checkpoints {
            self.checkpoint_all();
        }
        if self.checkpoint_at.is_some_and(|at| at <= now) {
            self.checkpoint_at = self.choices.checkpoint.interval().and_then(|every| now.checked_add(every));
            self.checkpoint_all();
        }
        if self.has_ended() && !std::mem::replace(&mut self.has_checkpointed_last, true) {
            self.checkpoint_last();
        }
        self.commit_what_is_due();
        self.ask_the_source(now);
    }

    fn dispatch(&mut self) {
        while self.jobs.running() < self.choices.parallel {
            let Some((id, job)) = self.jobs.start_next() else { return };
            if job.requeue.is_none() && !job.deliveries.iter().any(|placed| self.streams.is_current(placed)) {
                self.jobs.remove(id);
                continue;
            }
            let span = tracing::debug_span!(
                "semel.stream.event",
                pipeline = self.tools.pipeline.name(),
                stream = &*job.event.stream,
                key = %job.short(),
            );
            let attempt = Attempt {
                event: Arc::clone(&job.event),
                key: Arc::clone(&job.key),
                has_key: job.has_key,
                record: job.receipt.clone(),
                fingerprint: job.fingerprint,
                refused: job.refused.clone(),
                reader: job.deliveries.first().and_then(|placed| self.streams.reader_if_next(placed)),
                failures: job.failures,
            };
            let made = attempt.made(Arc::clone(&self.work), Arc::clone(&self.tools));
            let task = self.tasks.spawn(made.instrument(span));
            self.jobs_of_tasks.insert(task.id(), id);
        }
    }

    fn ended(&mut self, ended: Joined) {
        let (task, worked) = match ended {
            Ok((task, worked)) => (task, Some(worked)),
            Err(error) => (error.id(), None),
        };
        let Some(id) = self.jobs_of_tasks.remove(&task) else { return };
        match worked {
            Some(worked) => self.settle(id, worked),
            None => self.settle_panic(id),
        }
    }

    /// What the source is asked next: to hear of what is done before there is more.
    fn ask_the_source(&mut self, now: Instant) {
        let streams = &mut self.streams;
        self.to_start.retain(|start| streams.current(&start.stream, start.generation).is_some());
        let Some(ask) = self.next_ask(now) else { return };
        if !matches!(ask, Ask::Fetch(_)) {
            self.desk.interrupt();
        }
        if self.desk.is_free() {
            self.ask(ask);
        }
    }

    fn next_ask(&self, now: Instant) -> Option<Ask> {
        if !self.to_acknowledge.is_empty() {
            return Some(Ask::Acknowledge(Vec::new()));
        }
        if !self.to_give_back.is_empty() {
            return Some(Ask::GiveBack(Vec::new(), Duration::ZERO));
        }
        if let Some(start) = self.to_start.front() {
            return Some(Ask::Start(start.clone()));
        }
        if self.shared.is_due {
            return Some(Ask::Floor);
        }
        if self.is_stopping() || self.source_ended {
            return None;
        }
        if self.lag_at <= now {
            return Some(Ask::Lag);
        }
        Some(self.room()).filter(|room| *room > 0).map(Ask::Fetch)
    }

    fn ask(&mut self, ask: Ask) {
        let ask = match ask {
            Ask::Acknowledge(_) => Ask::Acknowledge(std::mem::take(&mut self.to_acknowledge)),
            Ask::GiveBack(..) => {
                let after = self.to_give_back.iter().map(|(_, after)| *after).max().unwrap_or_default();
                Ask::GiveBack(self.to_give_back.drain(..).map(|(placed, _)| placed).collect(), after)
            }
            Ask::Start(start) => {
                self.to_start.pop_front();
                Ask::Start(start)
            }
            Ask::Floor => {
                (self.shared.is_due, self.shared.acknowledged) = (false, 0);
                Ask::Floor
            }
            Ask::Lag => {
                self.lag_at = Instant::now().checked_add(LAG_EVERY).unwrap_or(self.lag_at);
                Ask::Lag
            }
            Ask::Fetch(most) => Ask::Fetch(most),
        };
        self.desk.ask(ask);
    }

    /// How many more events there is room for. Nothing is fetched before there is room for as many as may run at once, so
    /// that they come in batches.
    fn room(&self) -> usize {
        let parallel = self.choices.parallel;
        let active = self.jobs.active();
        let is_full = active > parallel
            || self.jobs.len() >= parallel.saturating_mul(IN_HAND_PER_RUNNING)
            || self.streams.ahead_most() >= AHEAD_MAX;
        if is_full { 0 } else { parallel.saturating_mul(2).saturating_sub(active) }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.error.is_some() || self.tools.control.is_stopping()
    }

    /// Nothing runs, and nothing will.
    fn has_ended(&self) -> bool {
        let is_last = self.is_stopping() || (self.source_ended && self.requeues.is_worked_off());
        is_last && self.jobs.is_empty() && self.tasks.is_empty()
    }

    fn is_over(&mut self) -> bool {
        if !self.has_ended() {
            return false;
        }
        let is_told = self.to_acknowledge.is_empty()
            && self.to_give_back.is_empty()
            && !self.shared.is_due
            && self.shared.committing == 0
            && !self.streams.is_any_due()
            && self.requeues.is_written()
            && !self.desk.is_at_work();
        if is_told || !self.is_stopping() {
            return is_told;
        }
        let now = Instant::now();
        let until = *self.grace_until.get_or_insert_with(|| now.checked_add(GRACE).unwrap_or(now));
        if now < until {
            return false;
        }
        tracing::warn!(
            pipeline = self.tools.pipeline.name(),
            "semel-stream: stopped before everything was acknowledged; it will come again, and its receipts be found"
        );
        true
    }

    /// When the next turn is due. What was due at the last one has begun then, or waits for something else.
    fn wake_at(&self, turned_at: Instant) -> Option<Instant> {
        let lag_at = (!self.is_stopping() && !self.source_ended).then_some(self.lag_at);
        let look_at = self.requeues.wake_at().filter(|_| !self.is_stopping() || !self.requeues.is_written());
        [self.jobs.next_due(), self.desk.free_at(), self.checkpoint_at, lag_at, look_at, self.grace_until]
            .into_iter()
            .flatten()
            .filter(|at| *at > turned_at)
            .min()
    }

    /// The first thing that somebody must look at: everything ends in order, and the caller is told.
    pub(super) fn fail(&mut self, error: Error) {
        tracing::error!(pipeline = self.tools.pipeline.name(), %error, "semel-stream: stopping");
        self.tools.control.stop();
        self.error.get_or_insert(error);
    }
}
