//! The measurement of pipelines: events per second on every store, in batches of several sizes.
//!
//! - [`reader`]: batches for a while, each checked.

mod reader;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use semel::Semel;
use semel::store::{MemoryStore, Store};
use semel_file::FileStore;
use semel_postgres::{PostgresStore, migrate};
use semel_redis::RedisStore;
use semel_stream::Pipeline;
use test_services::{AppendFsync, Postgres, Redis};
use tokio::runtime::Runtime;

use crate::args::StreamArgs;
use crate::callers::{THREADS, runtime, until_quiet};
use crate::folder::TempFolder;
use crate::report::{
    Bar, Case, ChartBar, Column, Metric, Page, Panel, Row, Rows, Sample, Shown, TENTHS, WHOLE, drive,
    filesystem, grouped,
};
use crate::servers::{postgres_version, redis_version};
use reader::{EVENTS_MAX, Kind, Plan, StreamReader};

/// The name of the pipeline.
const PIPELINE: &str = "invoices";
/// How many events go through at a time.
const BATCHES: [u64; 3] = [1, 100, 1_000];
const NEW: &str = "new events";
const DUPLICATES: &str = "duplicates";

/// Milliseconds, of microseconds: batches in memory take less than one.
const MS: Shown = Shown { factor: 1e-3, decimals: 3 };

/// Where receipts and offsets are.
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

/// Measures everything, and publishes the page.
pub(crate) fn run(args: &StreamArgs) -> Result<()> {
    let servers = Servers::start(args.folder.as_deref())?;
    let mut page = Page::new("stream", include_str!("../pages/stream.md"), args)?;
    page.fact("filesystem", servers.filesystem()?);
    page.fact("PostgreSQL", postgres_version(&servers.postgres)?);
    page.fact("Redis", redis_version(&servers.redis)?);
    let runtime = runtime(THREADS)?;
    let mut entries = Vec::new();
    let loading = Backend::ALL.map(|backend| case("loading", backend, args.events)).into();
    drive(1, &[loading], &mut page.rows, &mut |case, _| {
        let backend = Backend::ALL.into_iter().find(|backend| backend.name() == case.contestant);
        let backend = backend.context("every case has a backend")?;
        entries.push(runtime.block_on(servers.open(backend, args.events))?);
        Ok(())
    })?;
    until_quiet();
    page.fact_other_processes();
    measure(args, &mut entries, &runtime, &mut page.rows)?;
    let receipts = entries.iter().map(|entry| entry.ensure_kept(&runtime));
    let receipts = receipts.sum::<Result<u64>>()?;
    page.value("receipts", grouped(receipts));
    page.bars = bars(&page.rows);
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

fn measure(args: &StreamArgs, entries: &mut [Entry], runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    let kinds = BATCHES.into_iter().flat_map(|batch| [NEW, DUPLICATES].map(|kind| (kind, batch)));
    let group = |(kind, batch)| Backend::ALL.map(|backend| case(kind, backend, batch)).into();
    let groups: Vec<Vec<Case>> = kinds.map(group).collect();
    let span = Duration::from_millis(args.window_ms);
    drive(args.run.rounds, &groups, rows, &mut |case, rows| {
        let kind = if case.work == NEW { Kind::New } else { Kind::Duplicates };
        let entry = entries.iter_mut().find(|entry| entry.backend.name() == case.contestant);
        let entry = entry.context("every case has an entry")?;
        rows.add(case, entry.window(runtime, Plan { batch: case.load, kind, span })?);
        until_quiet();
        Ok(())
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
    fn start(folder: Option<&Path>) -> Result<Self> {
        let folder = TempFolder::under(folder)?;
        Ok(Self { folder, postgres: Postgres::start()?, redis: Redis::start(AppendFsync::EverySecond)? })
    }

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
            Backend::File => pipeline(FileStore::open(self.folder.fresh("store")?)?)?,
            Backend::Postgres => {
                migrate(&self.postgres.url()).await?;
                pipeline(PostgresStore::connect(&self.postgres.url()).await?)?
            }
            Backend::Redis => pipeline(RedisStore::connect(&self.redis.url()).await?)?,
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

/// One store, open and loaded.
struct Entry {
    backend: Backend,
    reader: StreamReader,
    loaded: u64,
    /// Receipts of stores that were dropped after their window.
    checked: u64,
}

impl Entry {
    /// One window. In memory, new events go into a store of their own, which is dropped afterwards: there is not room for
    /// those of all windows.
    fn window(&mut self, runtime: &Runtime, plan: Plan) -> Result<Sample> {
        if self.backend == Backend::Memory && plan.kind == Kind::New {
            let (sample, checked) = in_a_task(runtime, async move {
                let mut reader = StreamReader::begin(pipeline(MemoryStore::new())?, 0).await?;
                let sample = reader.window(plan).await?;
                reader.ensure_kept(0).await?;
                Ok((sample, reader.receipts()))
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
        Ok(self.reader.receipts() + self.checked)
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
    use super::*;
    use crate::report::rates;

    #[test]
    fn batches_are_compared_with_single_events_and_duplicates_with_new_ones() {
        let postgres = case(NEW, Backend::Postgres, 1_000);
        // 10, 20 and 40 times as many: the middle one counts.
        let rows = rates(&[
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
