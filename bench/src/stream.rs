//! The measurement of pipelines: events per second on every store, in batches of several sizes.
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use semel::store::{MemoryStore, Store};
use semel::{Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use semel_stream::{Commit, Event, EventKey, Pipeline, Position, Processed, Reader};
use test_services::{AppendFsync, Postgres, Redis};
use tokio::runtime::Runtime;

use crate::args::StreamArgs;
use crate::callers::{THREADS, runtime, until_quiet};
use crate::folder::{TempFolder, filesystem};
use crate::inputs::{BODY_BYTES, NAMES_MAX, Name};
use crate::report::{
    Bar, Case, ChartBar, Column, Metric, Page, Panel, Row, Rows, Sample, Shown, TENTHS, WHOLE, drive, float,
    grouped,
};
use crate::servers::{postgres_version, redis_version};
use crate::timing::{Stopwatch, processor_time};

const PIPELINE: &str = "invoices";
const BATCHES: [u64; 3] = [1, 100, 1_000];
const NEW: &str = "new events";
const DUPLICATES: &str = "duplicates";

/// Milliseconds, of microseconds: batches in memory take less than one.
const MS: Shown = Shown { factor: 1e-3, decimals: 3 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Memory,
    File,
    Postgres,
    Redis,
}

impl Backend {
    const ALL: [Self; 4] = [Self::Memory, Self::File, Self::Postgres, Self::Redis];

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis, everysec",
        }
    }
}

pub(crate) fn run(args: &StreamArgs) -> Result<()> {
    let folder = TempFolder::under(args.folder.as_deref())?;
    let servers =
        Servers { folder, postgres: Postgres::start()?, redis: Redis::start(AppendFsync::EverySecond)? };
    let mut page = Page::new("stream", include_str!("pages/stream.md"), args)?;
    page.fact("filesystem", servers.filesystem()?);
    page.fact("PostgreSQL", postgres_version(&servers.postgres)?);
    page.fact("Redis", redis_version(&servers.redis)?);
    let runtime = runtime(THREADS)?;
    let mut entries = Vec::new();
    let loading = Backend::ALL.map(|backend| (case("loading", backend, args.events), backend)).into();
    drive(1, &[loading], &mut page.rows, &mut |_, backend| {
        entries.push(runtime.block_on(servers.open(*backend, args.events))?);
        Ok(Vec::new())
    })?;
    until_quiet();
    page.fact_other_processes();
    measure(args, &mut entries, &runtime, &mut page.rows)?;
    let receipts = entries.iter().map(|entry| entry.ensure_kept(&runtime)).sum::<Result<u64>>()?;
    page.value("receipts", grouped(receipts));
    page.bars = bars(&page.rows);
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

fn measure(args: &StreamArgs, entries: &mut [Entry], runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    let kinds = BATCHES.into_iter().flat_map(|batch| [NEW, DUPLICATES].map(|kind| (kind, batch)));
    let group = |(kind, batch)| Backend::ALL.map(|backend| (case(kind, backend, batch), backend)).into();
    let groups: Vec<Vec<_>> = kinds.map(group).collect();
    let span = Duration::from_millis(args.window_ms);
    drive(args.run.rounds, &groups, rows, &mut |case, backend| {
        let kind = if case.work == NEW { Kind::New } else { Kind::Duplicates };
        let entry = entries.iter_mut().find(|entry| entry.backend == *backend);
        let plan = Plan { batch: case.load, kind, span };
        let sample = entry.context("every backend has an entry")?.window(runtime, plan)?;
        until_quiet();
        Ok(vec![(case, sample)])
    })?;
    // By store, and then by batch: what a batch gains is seen within a store.
    rows.sort_by_key(|case| Backend::ALL.iter().position(|backend| backend.name() == case.contestant));
    Ok(())
}

const fn case(kind: &'static str, backend: Backend, batch: u64) -> Case {
    Case::new(kind, backend.name()).load(batch)
}

/// What outlives the windows: servers, and the folder of the file store.
struct Servers {
    folder: TempFolder,
    postgres: Postgres,
    redis: Redis,
}

impl Servers {
    /// The filesystem of the file store; all data are on a disk.
    fn filesystem(&self) -> Result<String> {
        for server in [self.postgres.folder(), self.redis.folder()] {
            filesystem(&server.canonicalize()?, "set TMPDIR to a folder on a disk")?;
        }
        filesystem(self.folder.path(), "name a folder on a disk with --folder")
    }

    /// Opens a store, and gives so many events their receipts.
    async fn open(&self, backend: Backend, events: u64) -> Result<Entry> {
        let pipeline = match backend {
            Backend::Memory => pipeline(MemoryStore::new())?,
            Backend::File => pipeline(semel_file::FileStore::open(self.folder.fresh("store")?)?)?,
            Backend::Postgres => {
                migrate(&self.postgres.url()).await?;
                pipeline(PostgresStore::connect(&self.postgres.url()).await?)?
            }
            Backend::Redis => pipeline(semel_redis::RedisStore::connect(&self.redis.url()).await?)?,
        };
        let reader = StreamReader::begin(pipeline, events).await?;
        if backend == Backend::Postgres {
            for chore in ["VACUUM ANALYZE", "CHECKPOINT"] {
                self.postgres.ask(chore)?;
            }
        }
        Ok(Entry { backend, reader, loaded: events, checked: 0 })
    }
}

struct Entry {
    backend: Backend,
    reader: StreamReader,
    loaded: u64,
    /// Receipts of stores that were dropped after their window.
    checked: u64,
}

impl Entry {
    /// In memory, new events go into a store of their own: there is not room for those of all windows.
    fn window(&mut self, runtime: &Runtime, plan: Plan) -> Result<Sample> {
        if self.backend == Backend::Memory && plan.kind == Kind::New {
            let (sample, checked) = in_a_task(runtime, async move {
                let mut reader = StreamReader::begin(pipeline(MemoryStore::new())?, 0).await?;
                let sample = reader.window(plan).await?;
                reader.ensure_kept(0).await?;
                Ok((sample, reader.next))
            })?;
            self.checked += checked;
            return Ok(sample);
        }
        let mut reader = self.reader.clone();
        let (sample, reader) = in_a_task(runtime, async move { Ok((reader.window(plan).await?, reader)) })?;
        self.reader = reader;
        Ok(sample)
    }

    /// Whether every receipt and the offset are kept; how many receipts that is.
    fn ensure_kept(&self, runtime: &Runtime) -> Result<u64> {
        let (reader, loaded) = (self.reader.clone(), self.loaded);
        in_a_task(runtime, async move { reader.ensure_kept(loaded).await })
            .with_context(|| format!("the numbers of {} are void", self.backend.name()))?;
        Ok(self.reader.next + self.checked)
    }
}

/// A pipeline over this store. It keeps no replays in memory: a duplicate costs what it costs the first time.
fn pipeline(store: impl Store) -> Result<Pipeline> {
    Ok(Pipeline::new(&Semel::builder(store).replays_kept(0, 0).build()?, PIPELINE)?)
}

/// On the threads of the runtime, as a consumer would be, and not on the one that waits for it.
fn in_a_task<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    runtime.block_on(runtime.spawn(work))?
}

const STREAM: &str = "orders/0";
/// A window is over after so many events, however much time is left: the memory store is bounded.
const EVENTS_MAX: u64 = 500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Never seen before: the handler runs, and the offset moves.
    New,
    /// All of them have a receipt.
    Duplicates,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    batch: u64,
    kind: Kind,
    span: Duration,
}

/// A pipeline that reads the stream, and how far it is.
#[derive(Clone, Debug)]
struct StreamReader {
    pipeline: Pipeline,
    reader: Reader,
    /// The next event that was never seen; all before it have a receipt.
    next: u64,
    /// Where the next batch of duplicates begins.
    again: u64,
}

impl StreamReader {
    /// Reads the stream of this pipeline, after so many of its events got their receipts.
    async fn begin(pipeline: Pipeline, events: u64) -> Result<Self> {
        const LOADED_TOGETHER: u64 = 1_000;
        let mut first = 0;
        while first < events {
            let until = events.min(first + LOADED_TOGETHER);
            let loaded = (first..until).map(|number| (id(number), Outcome::success("")));
            pipeline.record(loaded).await?;
            first = until;
        }
        let reader = pipeline.take(STREAM).await?;
        Ok(Self { pipeline, reader, next: events, again: 0 })
    }

    /// Sends batches through, some unmeasured ones first.
    async fn window(&mut self, plan: Plan) -> Result<Sample> {
        let mut left = EVENTS_MAX;
        self.batches(plan, plan.span / 5, &mut left).await?;
        let ran_before = processor_time();
        let tally = self.batches(plan, plan.span, &mut left).await?;
        tally.sample(processor_time().saturating_sub(ran_before))
    }

    async fn batches(&mut self, plan: Plan, span: Duration, left: &mut u64) -> Result<Tally> {
        let mut tally = Tally::new()?;
        while tally.took < span && (tally.events == 0 || *left >= plan.batch) {
            // Making the events is the work of a source, and not measured.
            let batch = self.batch(plan);
            ensure!(self.next <= NAMES_MAX, "there are no new events left: use fewer rounds");
            // Ready at once: what is measured is the pipeline.
            let handler = |_: &Event, _| std::future::ready(Ok(Outcome::success("")));
            let watch = Stopwatch::start();
            let processed = self.pipeline.process(&batch, &EventKey::Broker, handler).await?;
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
    async fn ensure_kept(&self, loaded: u64) -> Result<()> {
        const LOOKED_AT_TOGETHER: usize = 1_000;
        let numbers: Vec<u64> = (0..self.next).collect();
        for numbers in numbers.chunks(LOOKED_AT_TOGETHER) {
            let ids: Vec<String> = numbers.iter().copied().map(id).collect();
            let answers = self.pipeline.unseen(&ids).await?;
            let unseen = answers.iter().filter(|answer| !matches!(answer, Ok(false))).count();
            ensure!(unseen == 0, "{unseen} of the events from {:?} on have no receipt", numbers.first());
        }
        let offset = self.pipeline.offset(STREAM).await?.and_then(|offset| offset.position);
        let last = (self.next > loaded).then(|| Position::new(u128::from(self.next - 1)));
        ensure!(offset == last, "the offset is {offset:?}, and {last:?} was the last that was committed");
        Ok(())
    }
}

/// A pipeline that leaves events out, or runs them again, must not count as quick.
fn ensure_answered(plan: Plan, processed: &Processed) -> Result<()> {
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

fn event(number: u64) -> Event {
    Event::new(STREAM, Name::of(number).as_str(), [b'{'; BODY_BYTES].as_slice()).at(u128::from(number))
}

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

/// What a batch must gain over events one by one, where every commit waits for a disk, and a duplicate over a new event.
fn bars(rows: &Rows) -> Vec<Bar> {
    let bar = |own: Case, other, wanted, beside| {
        let name = format!("{own}, {}, batches of {}", own.work, grouped(own.load));
        Bar::at_least(name, wanted, rows.times(own, other, Metric::PerSecond), beside)
    };
    let postgres = case(NEW, Backend::Postgres, 1_000);
    let single = bar(postgres, postgres.load(1), 20.0, "× batches of 1");
    let duplicates = [Backend::File, Backend::Postgres].map(|backend| {
        let new = case(NEW, backend, 1_000);
        bar(new.work(DUPLICATES), new, 5.0, "× new events")
    });
    [single].into_iter().chain(duplicates).collect()
}

fn describe(page: &mut Page) {
    page.own = &[NEW];
    page.value("events_max", grouped(EVENTS_MAX));
    let columns = || {
        vec![
            Column::contestant(),
            Column::load("batch"),
            Column::median("events/s", Metric::PerSecond, WHOLE),
            Column::range(Metric::PerSecond, WHOLE),
            Column::median("batch p50 ms", Metric::P50Us, MS),
            Column::median("p99 ms", Metric::P99Us, MS),
            Column::median("CPU µs an event", Metric::CpuUs, TENTHS),
            Column::times("× batches of 1", Metric::PerSecond, |case| (case, case.load(1))),
        ]
    };
    page.table(NEW, &columns());
    let mut duplicates = columns();
    duplicates.push(Column::times("× new events", Metric::PerSecond, |case| (case, case.work(NEW))));
    page.table(DUPLICATES, &duplicates);
    // A panel a store: their scales are too far apart for one.
    for backend in Backend::ALL {
        let rows = page.rows.all().iter().filter(|row| row.case.contestant == backend.name());
        let axis = "events per second: more is better; p99 is of a batch";
        let bar = |row: &Row| {
            let bar = ChartBar { name: row.case.work.to_owned(), ..ChartBar::rate(row) };
            (format!("batches of {}", grouped(row.case.load)), bar)
        };
        page.panel(Panel::new(backend.name(), axis, rows, bar));
    }
}

#[cfg(test)]
mod tests {
    use semel_stream::Seen;

    use super::*;

    fn plan(batch: u64, kind: Kind) -> Plan {
        Plan { batch, kind, span: Duration::from_millis(20) }
    }

    fn default_pipeline() -> Pipeline {
        Pipeline::new(&Semel::new(MemoryStore::new()), "p").unwrap()
    }

    #[test]
    fn windows_of_both_kinds_leave_receipts_and_an_offset_behind() {
        runtime(1).unwrap().block_on(async {
            let mut reader = StreamReader::begin(default_pipeline(), 1_000).await.unwrap();
            for batch in [1, 100] {
                for kind in [Kind::New, Kind::Duplicates] {
                    let window = reader.window(plan(batch, kind)).await.unwrap();
                    assert!(window[&Metric::PerSecond] > 0.0, "{window:?}");
                    assert!(window[&Metric::P50Us] <= window[&Metric::P99Us], "{window:?}");
                }
            }
            assert!(reader.next > 1_000);
            reader.ensure_kept(1_000).await.unwrap();
        });
    }

    #[test]
    fn an_offset_that_is_elsewhere_is_noticed() {
        runtime(1).unwrap().block_on(async {
            let pipeline = default_pipeline();
            let mut reader = StreamReader::begin(pipeline.clone(), 1_000).await.unwrap();
            reader.window(plan(10, Kind::New)).await.unwrap();
            pipeline.rewind(STREAM, Some(Position::new(3))).await.unwrap();
            assert!(reader.ensure_kept(1_000).await.unwrap_err().to_string().contains("the offset is"));
            let second = pipeline.take(STREAM).await.unwrap();
            let last = u128::from(reader.next - 1);
            let commit = second.commit(Position::new(last), None).await.unwrap();
            assert!(matches!(commit, Commit::Committed(_)), "{commit:?}");
            reader.ensure_kept(1_000).await.unwrap();
            reader.window(plan(10, Kind::New)).await.unwrap_err();
            assert!(reader.ensure_kept(1_000).await.is_err(), "a fenced reader commits nothing");
        });
    }

    #[test]
    fn receipts_that_were_forgotten_are_noticed() {
        runtime(1).unwrap().block_on(async {
            let semel = Semel::new(MemoryStore::new());
            // Over long before the window is.
            let forgetful =
                Pipeline::builder(&semel, "p").retention(Duration::from_micros(1)).build().unwrap();
            let mut reader = StreamReader::begin(forgetful, 0).await.unwrap();
            reader.window(plan(10, Kind::New)).await.unwrap();
            assert!(reader.ensure_kept(0).await.unwrap_err().to_string().contains("have no receipt"));
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

    #[test]
    fn batches_are_compared_with_single_events_and_duplicates_with_new_ones() {
        let postgres = case(NEW, Backend::Postgres, 1_000);
        // 10, 20 and 40 times as many: the middle one counts.
        let rows = crate::report::rates(&[
            (postgres.load(1), &[100.0, 1.0, 10.0]),
            (postgres, &[1_000.0, 20.0, 400.0]),
            (postgres.work(DUPLICATES), &[4_900.0, 98.0, 1_960.0]),
        ]);
        let bars = bars(&rows);
        let [single, file, postgres] = bars.as_slice() else { panic!("{bars:?}") };
        assert!(single.reached && single.wanted == "at least 20.0× batches of 1", "{single:?}");
        assert!(!postgres.reached && postgres.found == "4.90×", "{postgres:?}");
        assert!(!file.reached, "what was not measured is not reached: {file:?}");
    }
}
