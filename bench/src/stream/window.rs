//! Batches for a while: how many events get through, and whether every one was told what it should be.

use std::time::Duration;

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use semel::Outcome;
use semel_stream::{Commit, Event, EventKey, Pipeline, Position, Processed, Reader};

use crate::inputs::{BODY_BYTES, NAMES_MAX, Name};
use crate::stopwatch::{Stopwatch, processor_time};

/// The one stream.
pub(super) const STREAM: &str = "orders/0";
/// A window is over after so many events, however much time is left: the memory store is bounded.
pub(super) const EVENTS_MAX: u64 = 500_000;

/// Which events a batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nobody has seen them: the handler runs, and the offset moves.
    New,
    /// All of them have a receipt.
    Duplicates,
}

/// How large batches are, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) batch: u64,
    pub(super) kind: Kind,
    pub(super) span: Duration,
}

/// What a window found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Events per second.
    pub(super) rate: f64,
    /// How long a batch took, its offset included.
    pub(super) batch_p50_us: f64,
    pub(super) batch_p99_us: f64,
    /// Processor time of an event in this process.
    pub(super) cpu_us: f64,
}

/// A pipeline that reads the stream, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pipeline: Pipeline,
    reader: Reader,
    /// The next event that nobody has seen; all before it have a receipt.
    next: u64,
    /// Where the next batch of duplicates begins.
    again: u64,
}

impl Course {
    /// Reads the stream of this pipeline, after so many of its events got their receipts.
    pub(super) async fn begin(pipeline: Pipeline, events: u64) -> Result<Self> {
        const LOADED_TOGETHER: u64 = 1_000;
        let mut first = 0;
        while first < events {
            let until = events.min(first + LOADED_TOGETHER);
            let loaded = (first..until).map(|number| (id(number), Outcome::success(*b"")));
            pipeline.record(loaded).await?;
            first = until;
        }
        let reader = pipeline.take(STREAM).await?;
        Ok(Self { pipeline, reader, next: events, again: 0 })
    }

    /// How many events have a receipt.
    pub(super) fn receipts(&self) -> u64 {
        self.next
    }

    /// Sends batches through, some unmeasured ones first.
    pub(super) async fn window(&mut self, plan: Plan) -> Result<Window> {
        let mut left = EVENTS_MAX;
        self.batches(plan, plan.span / 5, &mut left).await?;
        let ran_before = processor_time();
        let tally = self.batches(plan, plan.span, &mut left).await?;
        let cpu = processor_time().saturating_sub(ran_before);
        tally.window(cpu)
    }

    async fn batches(&mut self, plan: Plan, span: Duration, left: &mut u64) -> Result<Tally> {
        let mut tally = Tally::new()?;
        while tally.took < span && (tally.events == 0 || *left >= plan.batch) {
            // What a source would have handed over is not what is measured.
            let batch = self.batch(plan);
            ensure!(self.next <= NAMES_MAX, "there are no new events left: choose fewer rounds");
            let watch = Stopwatch::start();
            let processed = self.process(&batch).await?;
            if plan.kind == Kind::New {
                self.commit(&batch, &processed).await?;
            }
            tally.add(plan.batch, watch.elapsed())?;
            ensure_told(plan, &processed)?;
            *left = left.saturating_sub(plan.batch);
        }
        if plan.kind == Kind::Duplicates {
            // What is counted now and written later is part of the work.
            let watch = Stopwatch::start();
            self.pipeline.semel().flush().await?;
            tally.took += watch.elapsed();
        }
        Ok(tally)
    }

    /// The events of the next batch.
    fn batch(&mut self, plan: Plan) -> Vec<Event> {
        let first = match plan.kind {
            Kind::New => {
                self.next += plan.batch;
                self.next - plan.batch
            }
            Kind::Duplicates => {
                let first = if self.again + plan.batch <= self.next { self.again } else { 0 };
                self.again = first + plan.batch;
                first
            }
        };
        (first..first + plan.batch).map(event).collect()
    }

    async fn process(&self, batch: &[Event]) -> Result<Processed> {
        // Ready at once: what is measured is the pipeline.
        let handler = |_: &Event, _| std::future::ready(Ok(Outcome::success(*b"")));
        Ok(self.pipeline.process(batch, &EventKey::Broker, handler).await?)
    }

    /// The offset, behind the last event up to which all have their receipts.
    async fn commit(&self, batch: &[Event], processed: &Processed) -> Result<()> {
        let done = batch.get(..processed.contiguous()).unwrap_or_default();
        let Some((last, position)) = done.last().and_then(|last| Some((last, last.position?))) else {
            return Ok(());
        };
        let commit = self.reader.commit(position, last.id.as_deref()).await?;
        ensure!(matches!(commit, Commit::Committed(_)), "a commit was told {commit:?}");
        Ok(())
    }

    /// Whether every event has its receipt, and the offset is behind the last one that a window processed.
    pub(super) async fn ensure_kept(&self, loaded: u64) -> Result<()> {
        const LOOKED_AT_TOGETHER: usize = 1_000;
        let numbers: Vec<u64> = (0..self.next).collect();
        for numbers in numbers.chunks(LOOKED_AT_TOGETHER) {
            let ids: Vec<String> = numbers.iter().copied().map(id).collect();
            let unseen = self.pipeline.unseen(&ids).await?.into_iter().filter(|is_unseen| *is_unseen).count();
            ensure!(unseen == 0, "{unseen} of the events from {:?} on have no receipt", numbers.first());
        }
        let offset = self.pipeline.offset(STREAM).await?.and_then(|offset| offset.position);
        let last = (self.next > loaded).then(|| position(self.next - 1));
        ensure!(offset == last, "the offset is {offset:?}, and {last:?} was the last that was committed");
        Ok(())
    }
}

/// Whoever is quick because events were left out, or ran again, is not quick.
pub(super) fn ensure_told(plan: Plan, processed: &Processed) -> Result<()> {
    let told = match plan.kind {
        Kind::New => processed.ran(),
        Kind::Duplicates => processed.duplicates(),
    };
    let Plan { batch, kind, .. } = plan;
    ensure!(told as u64 == batch, "of {batch} events, {told} were told what {kind:?} should be");
    Ok(())
}

fn id(number: u64) -> String {
    Name::of(number).as_str().to_owned()
}

fn position(number: u64) -> Position {
    Position::new(u128::from(number))
}

fn event(number: u64) -> Event {
    Event::new(STREAM, Name::of(number).as_str(), [b'{'; BODY_BYTES].as_slice()).at(u128::from(number))
}

/// What is counted while batches go through.
struct Tally {
    took: Duration,
    events: u64,
    nanos: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self { took: Duration::ZERO, events: 0, nanos: Histogram::new(3)? })
    }

    fn add(&mut self, events: u64, took: Duration) -> Result<()> {
        self.events += events;
        self.took += took;
        Ok(self.nanos.record(u64::try_from(took.as_nanos())?)?)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and times of a few seconds are far below 2⁵²")]
    fn window(&self, cpu: Duration) -> Result<Window> {
        ensure!(self.events > 0 && !self.took.is_zero(), "nothing went through: make the window longer");
        let micros = |quantile| self.nanos.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Window {
            rate: self.events as f64 / self.took.as_secs_f64(),
            batch_p50_us: micros(0.5),
            batch_p99_us: micros(0.99),
            cpu_us: cpu.as_secs_f64() * 1e6 / self.events as f64,
        })
    }
}
