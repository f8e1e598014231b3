//! The stores that pipelines are measured on, and the servers that some of them are on.

use anyhow::{Context, Result};
use semel::Semel;
use semel::store::{MemoryStore, Store};
use semel_file::FileStore;
use semel_postgres::{PostgresStore, migrate};
use semel_redis::RedisStore;
use semel_stream::Pipeline;
use test_services::{AppendFsync, Postgres, Redis};
use tokio::runtime::Runtime;

use super::window::{Course, Kind, Plan, Window};
use crate::file::TempFolder;
use crate::report::filesystem;
use crate::servers::redis_version;

/// What the pipeline is called.
const PIPELINE: &str = "invoices";

/// Where receipts and offsets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Memory,
    File,
    Postgres,
    Redis,
}

impl Place {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::File, Self::Postgres, Self::Redis];

    /// Its name in tables and charts.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis, everysec",
        }
    }
}

/// What outlives the windows: servers, and the folder of the file store.
pub(super) struct Grounds {
    folder: TempFolder,
    postgres: Postgres,
    redis: Redis,
}

impl Grounds {
    pub(super) fn start(folder: Option<&std::path::Path>) -> Result<Self> {
        let folder = TempFolder::under(folder)?;
        Ok(Self { folder, postgres: Postgres::start()?, redis: Redis::start(AppendFsync::EverySecond)? })
    }

    /// Which filesystem files are on; all of them are on a disk.
    pub(super) fn filesystem(&self) -> Result<String> {
        for server in [self.postgres.folder(), self.redis.folder()] {
            filesystem(&server.canonicalize()?, "set TMPDIR to a folder on a disk")?;
        }
        filesystem(self.folder.path(), "say --folder with one on a disk")
    }

    /// Which servers these are.
    pub(super) fn servers(&self) -> Result<String> {
        let postgres = self.postgres.ask("SHOW server_version")?;
        let postgres = postgres.split_whitespace().next().context("the server does not say its version")?;
        Ok(format!("PostgreSQL {postgres}, Redis {}", redis_version(&self.redis)?))
    }

    /// Opens a store, and gives so many events their receipts.
    pub(super) async fn open(&self, place: Place, events: u64) -> Result<Entry> {
        let pipeline = match place {
            Place::Memory => pipeline(MemoryStore::new())?,
            Place::File => pipeline(FileStore::open(self.folder.fresh("store")?)?)?,
            Place::Postgres => {
                migrate(&self.postgres.url()).await?;
                pipeline(PostgresStore::connect(&self.postgres.url()).await?)?
            }
            Place::Redis => pipeline(RedisStore::connect(&self.redis.url()).await?)?,
        };
        let course = Course::begin(pipeline, events).await?;
        if place == Place::Postgres {
            for chore in ["VACUUM ANALYZE", "CHECKPOINT"] {
                self.postgres.ask(chore)?;
            }
        }
        Ok(Entry { place, course, loaded: events, checked: 0 })
    }
}

/// One store, open and loaded.
pub(super) struct Entry {
    pub(super) place: Place,
    course: Course,
    loaded: u64,
    checked: u64,
}

impl Entry {
    /// One window. In memory, new events go into a store of their own, which is gone afterwards: there is not room for those
    /// of all windows.
    pub(super) fn window(&mut self, runtime: &Runtime, plan: Plan) -> Result<Window> {
        if self.place == Place::Memory && plan.kind == Kind::New {
            let window = in_a_task(runtime, async move {
                let mut course = Course::begin(pipeline(MemoryStore::new())?, 0).await?;
                let window = course.window(plan).await?;
                course.ensure_kept(0).await?;
                Ok((window, course.receipts()))
            });
            let (window, checked) = window?;
            self.checked += checked;
            return Ok(window);
        }
        let mut course = self.course.clone();
        let (window, course) = in_a_task(runtime, async move { Ok((course.window(plan).await?, course)) })?;
        self.course = course;
        Ok(window)
    }

    /// Whether everything that was told is kept; how many events that is.
    pub(super) fn ensure_kept(&self, runtime: &Runtime) -> Result<u64> {
        let (course, loaded) = (self.course.clone(), self.loaded);
        in_a_task(runtime, async move { course.ensure_kept(loaded).await })
            .with_context(|| format!("on {}, so its numbers count for nothing", self.place.name()))?;
        Ok(self.course.receipts() + self.checked)
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
