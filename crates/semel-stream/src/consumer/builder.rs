//! A consumer and its choices.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use semel::{Error, ErrorKind, Permit, Result};

use super::backoff::Backoff;
use super::checkpoint::Checkpoint;
use super::choices::{OnBusy, OnHeld, Order};
use super::claiming::Claiming;
use super::control::{Control, Stopper};
use super::report::{Report, Tally};
use super::requeues::warn_of_lost_payloads;
use super::running::Running;
use super::tools::Tools;
use super::watch::Watch;
use super::work::Work;
use crate::dead_letter::{DEAD_LETTER_BYTES_MAX_DEFAULT, DeadLetters, LoggedDeadLetters};
use crate::event::Event;
use crate::failure::Handled;
use crate::key::{EventKey, OnMissingKey};
use crate::pipeline::Pipeline;
use crate::source::{Pending, Source};

/// How many events are in work at once, unless the consumer says otherwise.
const PARALLEL_DEFAULT: usize = 16;
/// After how many attempts an event is put aside, unless the consumer says otherwise.
const ATTEMPTS_DEFAULT: u32 = 10;

/// Reads a source and processes each event once.
///
/// For each event: claim, handler, receipt, and only then the offset of the stream, or the acknowledgement. A crash
/// between any two of them is harmless to whatever is behind a receipt.
///
/// Dropping the future of [`run`](Self::run) ends everything at once, as a crash would: what ran is decided by its lease.
/// [`Stopper::stop`] ends it in order.
#[must_use = "a consumer does nothing until it runs"]
pub struct Consumer<S> {
    pub(super) source: S,
    pub(super) choices: Choices,
    pipeline: Pipeline,
    backoff: Backoff,
    attempts_max: u32,
    dead_letters: Option<Box<dyn DeadLetters>>,
    dead_letter_bytes_max: usize,
    watch: Option<Arc<dyn Watch>>,
    control: Arc<Control>,
    tally: Arc<Tally>,
}

/// What only the loop needs to know.
pub(super) struct Choices {
    pub(super) key: EventKey,
    pub(super) on_missing_key: OnMissingKey,
    pub(super) parallel: usize,
    pub(super) order: Order,
    pub(super) checkpoint: Checkpoint,
    pub(super) on_busy: OnBusy,
    pub(super) on_held: OnHeld,
    pub(super) compares_payloads: bool,
}

impl<S: Source> Consumer<S> {
    /// A consumer of this source under the default choices.
    pub fn new(pipeline: Pipeline, source: S) -> Self {
        let tally = Arc::new(Tally::new(pipeline.name()));
        let choices = Choices {
            key: EventKey::default(),
            on_missing_key: OnMissingKey::default(),
            parallel: PARALLEL_DEFAULT,
            order: Order::default(),
            checkpoint: Checkpoint::default(),
            on_busy: OnBusy::default(),
            on_held: OnHeld::default(),
            compares_payloads: false,
        };
        Self {
            source,
            choices,
            pipeline,
            backoff: Backoff::default(),
            attempts_max: ATTEMPTS_DEFAULT,
            dead_letters: None,
            dead_letter_bytes_max: DEAD_LETTER_BYTES_MAX_DEFAULT,
            watch: None,
            control: Control::new(&tally),
            tally,
        }
    }

    /// What makes two events the same one; the broker's own id if nothing is said.
    pub fn key(mut self, key: EventKey) -> Self {
        self.choices.key = key;
        self
    }

    /// What becomes of an event without a key.
    pub fn on_missing_key(mut self, on_missing_key: OnMissingKey) -> Self {
        self.choices.on_missing_key = on_missing_key;
        self
    }

    /// How many events are in work at once; 16 if nothing is said. 0 is refused when the consumer starts.
    pub fn parallel(mut self, events: usize) -> Self {
        self.choices.parallel = events;
        self
    }

    /// Which events must be processed one after the other; none if nothing is said.
    pub fn order(mut self, order: Order) -> Self {
        self.choices.order = order;
        self
    }

    /// When offsets are committed; every second if nothing is said. `Every(0)` is refused when the consumer starts.
    pub fn checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.choices.checkpoint = checkpoint;
        self
    }

    /// After how many attempts an event is put aside; 10 if nothing is said. 0 is refused when the consumer starts.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// How long to wait before another try: of an event, of a store, of a broker.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What becomes of an event that somebody else is processing.
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.choices.on_busy = on_busy;
        self
    }

    /// What becomes of an event that nobody may process before somebody has looked.
    pub fn on_held(mut self, on_held: OnHeld) -> Self {
        self.choices.on_held = on_held;
        self
    }

    /// An event under the key of another, with another payload, goes to the dead letters instead of counting as the same.
    pub fn compare_payloads(mut self) -> Self {
        self.choices.compares_payloads = true;
        self
    }

    /// Where events go that cannot be processed, besides their receipts; nowhere but a log line if nothing is said.
    pub fn dead_letters(mut self, dead_letters: impl DeadLetters) -> Self {
        self.dead_letters = Some(Box::new(dead_letters));
        self
    }

    /// How many bytes of payload and headers the receipt of a dead letter keeps, so that it can be shown and requeued; 256 KiB
    /// if nothing is said, and 0 to keep none. Of a larger one, the length and the digest of the payload are kept.
    pub fn dead_letter_bytes_max(mut self, bytes: usize) -> Self {
        self.dead_letter_bytes_max = bytes;
        self
    }

    /// Who sees every step.
    pub fn watch(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// What stops this consumer, and sees how far it has come.
    pub fn stopper(&self) -> Stopper {
        self.control.stopper()
    }

    /// Processes events with this handler until the source ends, the consumer is stopped, or somebody must look.
    pub fn run<'s, F, Fut>(self, handler: F) -> Pending<'s, Report>
    where
        S: 's,
        F: Fn(Arc<Event>, Permit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        self.run_with(Claiming::new(handler))
    }

    /// Processes events in another way than by claim, handler and receipt: see [`Work`].
    pub fn run_with<'s, W: Work>(self, work: W) -> Pending<'s, Report>
    where
        S: 's,
    {
        if let Err(error) = self.checked() {
            return Box::pin(std::future::ready(Err(error)));
        }
        let tools = Tools {
            pipeline: self.pipeline,
            has_place_for_letters: self.dead_letters.is_some(),
            dead_letters: self.dead_letters.unwrap_or_else(|| Box::new(LoggedDeadLetters)),
            dead_letter_bytes_max: self.dead_letter_bytes_max,
            watch: self.watch,
            control: self.control,
            tally: self.tally,
            backoff: self.backoff,
            attempts_max: self.attempts_max,
        };
        warn_of_lost_payloads(&tools);
        // Boxed, source and work too: the loop is compiled here once, and not again for every caller.
        Running::start(Box::new(self.source), self.choices, tools, Arc::new(work))
    }

    /// Refuses what could never work, by the name of the choice.
    fn checked(&self) -> Result<()> {
        if self.choices.parallel == 0 {
            return Err(invalid("parallel is 0; no event would ever be processed: give 1 or more"));
        }
        if self.attempts_max == 0 {
            return Err(invalid("attempts_max is 0; every event would be put aside untried: give 1 or more"));
        }
        if self.choices.checkpoint == Checkpoint::Every(0) {
            return Err(invalid(
                "checkpoint is Every(0); give 1 or more, or EachEvent to commit after each event",
            ));
        }
        Ok(())
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

impl<S> fmt::Debug for Consumer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("pipeline", &self.pipeline.name())
            .field("parallel", &self.choices.parallel)
            .field("checkpoint", &self.choices.checkpoint)
            .finish_non_exhaustive()
    }
}
