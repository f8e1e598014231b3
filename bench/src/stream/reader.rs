//! A pipeline that reads a stream: batches for a while, each checked.

use std::time::Duration;

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use semel::Outcome;
use semel_stream::{Commit, Event, EventKey, Pipeline, Position, Processed, Reader};

use crate::inputs::{BODY_BYTES, NAMES_MAX, Name};
use crate::report::{Metric, Sample, float};
use crate::timing::{Stopwatch, processor_time};

/// The one stream.
pub(super) const STREAM: &str = "orders/0";
/// A window is over after so many events, however much time is left: the memory store is bounded.
pub(super) const EVENTS_MAX: u64 = 500_000;

/// Which events a batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Never seen before: the handler runs, and the offset moves.
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

/// A pipeline that reads the stream, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct StreamReader {
    pipeline: Pipeline,
    reader: Reader,
    /// The next event that was never seen; all before it have a receipt.
    next: u64,
    /// Where the next batch of duplicates begins.
    again: u64,
}

impl StreamReader {
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
    pub(super) async fn window(&mut self, plan: Plan) -> Result<Sample> {
        let mut left = EVENTS_MAX;
        self.batches(plan, plan.span / 5, &mut left).await?;
        let ran_before = processor_time();
        let tally = self.batches(plan, plan.span, &mut left).await?;
        let cpu = processor_time().saturating_sub(ran_before);
        tally.sample(cpu)
    }

    async fn batches(&mut self, plan: Plan, span: Duration, left: &mut u64) -> Result<Tally> {
        let mut tally = Tally::new()?;
        while tally.took < span && (tally.events == 0 || *left >= plan.batch) {
            // Making the events is the work of a source, and not measured.
            let batch = self.batch(plan);
            ensure!(self.next <= NAMES_MAX, "there are no new events left: use fewer rounds");
            let watch = Stopwatch::start();
            let processed = self.process(&batch).await?;
            if plan.kind == Kind::New {
                self.commit(&batch, &processed).await?;
            }
            tally.add(plan.batch, watch.elapsed())?;
            ensure_answered(plan, &processed)?;
            *left = left.saturating_sub(plan.batch);
        }
        if plan.kind == Kind::Duplicates {
            // Deferred counts are part of the work.
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
        ensure!(matches!(commit, Commit::Committed(_)), "the answer to a commit was {commit:?}");
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

/// A pipeline that leaves events out, or runs them again, must not count as quick.
pub(super) fn ensure_answered(plan: Plan, processed: &Processed) -> Result<()> {
    let right = match plan.kind {
        Kind::New => processed.ran(),
        Kind::Duplicates => processed.duplicates(),
    };
    let Plan { batch, kind, .. } = plan;
    ensure!(right as u64 == batch, "of {batch} events, {right} were answered as {kind:?} should be");
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

    fn sample(&self, cpu: Duration) -> Result<Sample> {
        ensure!(self.events > 0 && !self.took.is_zero(), "nothing went through: use longer windows");
        let micros = |quantile| float(self.nanos.value_at_quantile(quantile)) / 1e3;
        Ok(Sample::from([
            (Metric::PerSecond, float(self.events) / self.took.as_secs_f64()),
            (Metric::P50Us, micros(0.5)),
            (Metric::P99Us, micros(0.99)),
            (Metric::CpuUs, cpu.as_secs_f64() * 1e6 / float(self.events)),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use semel::Semel;
    use semel::store::MemoryStore;
    use semel_stream::Seen;

    use super::*;
    use crate::callers::runtime;

    fn plan(batch: u64, kind: Kind) -> Plan {
        Plan { batch, kind, span: Duration::from_millis(20) }
    }

    fn pipeline() -> Pipeline {
        Pipeline::new(&Semel::new(MemoryStore::new()), "p").unwrap()
    }

    #[test]
    fn windows_of_both_kinds_leave_receipts_and_an_offset_behind() {
        runtime(1).unwrap().block_on(async {
            let mut course = StreamReader::begin(pipeline(), 1_000).await.unwrap();
            for batch in [1, 100] {
                for kind in [Kind::New, Kind::Duplicates] {
                    let window = course.window(plan(batch, kind)).await.unwrap();
                    assert!(window[&Metric::PerSecond] > 0.0, "{window:?}");
                    assert!(window[&Metric::P50Us] <= window[&Metric::P99Us], "{window:?}");
                }
            }
            assert!(course.receipts() > 1_000);
            course.ensure_kept(1_000).await.unwrap();
        });
    }

    #[test]
    fn an_offset_that_is_elsewhere_is_noticed() {
        runtime(1).unwrap().block_on(async {
            let pipeline = pipeline();
            let mut course = StreamReader::begin(pipeline.clone(), 1_000).await.unwrap();
            course.window(plan(10, Kind::New)).await.unwrap();
            pipeline.rewind(STREAM, Some(Position::new(3))).await.unwrap();
            assert!(course.ensure_kept(1_000).await.unwrap_err().to_string().contains("the offset is"));
            let reader = pipeline.take(STREAM).await.unwrap();
            let last = u128::from(course.receipts() - 1);
            let commit = reader.commit(Position::new(last), None).await.unwrap();
            assert!(matches!(commit, Commit::Committed(_)), "{commit:?}");
            course.ensure_kept(1_000).await.unwrap();
            course.window(plan(10, Kind::New)).await.unwrap_err();
            assert!(course.ensure_kept(1_000).await.is_err(), "whoever was fenced committed nothing");
        });
    }

    #[test]
    fn receipts_that_were_forgotten_are_noticed() {
        runtime(1).unwrap().block_on(async {
            let semel = Semel::new(MemoryStore::new());
            // Over long before the window is.
            let forgetful =
                Pipeline::builder(&semel, "p").retention(Duration::from_micros(1)).build().unwrap();
            let mut course = StreamReader::begin(forgetful, 0).await.unwrap();
            course.window(plan(10, Kind::New)).await.unwrap();
            assert!(course.ensure_kept(0).await.unwrap_err().to_string().contains("have no receipt"));
        });
    }

    #[test]
    fn a_batch_that_was_answered_anything_else_is_no_result() {
        let processed = |events| Processed { events };
        let (ran, duplicate) = (|| Seen::Ran { attempt: 1 }, || Seen::Duplicate);
        assert!(ensure_answered(plan(2, Kind::New), &processed(vec![ran(), ran()])).is_ok());
        assert!(
            ensure_answered(plan(2, Kind::Duplicates), &processed(vec![duplicate(), duplicate()])).is_ok()
        );
        for wrong in [vec![ran(), duplicate()], vec![ran()], vec![ran(), Seen::Busy]] {
            assert!(ensure_answered(plan(2, Kind::New), &processed(wrong)).is_err());
        }
        assert!(ensure_answered(plan(2, Kind::Duplicates), &processed(vec![ran(), duplicate()])).is_err());
    }
}
