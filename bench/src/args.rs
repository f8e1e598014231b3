//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::file::{Store, Task};
use crate::http::Layer;

/// Side-by-side measurements of semel and of what projects write themselves
///
/// Rounds are interleaved, and the median counts. Every measurement prints its page, and writes it with a chart and JSON.
#[derive(Debug, Parser)]
#[command(name = "semel-bench")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The engine and the memory store, beside a `DashMap` as it is usually written and a lean one
    ///
    /// Every round builds each contestant anew, loads it with the keys, and measures one window of replays and one of cycles.
    /// Windows are counted in calls and not in seconds, so that a fast contestant does not work on a larger map.
    Memory(MemoryArgs),
    /// The embedded durable store, beside fjall, redb and SQLite; every answer waits for the disk
    ///
    /// Every contestant is loaded once and stays open; each round measures a window of every one with 1, 64 and 1,024
    /// callers. What happens once in a store's life (opening, sweeping, growing) is measured in processes of its own. All of
    /// it takes about a quarter of an hour.
    File(FileArgs),
    /// The store on PostgreSQL, beside upsert-select-update call by call, and the store of cratestack-sqlx
    ///
    /// Starts a server of its own on a free port, and stops it afterwards; its data are in TMPDIR, which must be on a disk.
    /// Each round measures a window of every contestant with 1, 32 and 256 callers, of cycles and of replays. At the end
    /// every key is counted. All of it takes about three minutes.
    ///
    /// With --growth, semel alone is also measured over tables of several sizes, each on a server of its own: loading takes
    /// about a minute and 1 GB of disk for each million keys.
    Postgres(PostgresArgs),
    /// The store on Redis, beside SET NX, GET and SET call by call; with appendfsync everysec and always
    ///
    /// In the same manner as for PostgreSQL, on two servers; it takes up to four minutes.
    Redis(ServerArgs),
    /// The layer around a handler and the proxy before it, beside the bare handler, other layers, and nginx
    ///
    /// Every window has processes of its own: a handler, what is around or before it, and clients on one thread here. Every
    /// answer is checked, and how often the handler ran. All of it takes about four minutes.
    Http(HttpArgs),
    /// Events through a pipeline: on every store, in batches of 1, 100 and 1,000, new ones and duplicates
    ///
    /// The handler does nothing, and the offset is committed once a batch. Every batch is checked, and every receipt once more
    /// at the end. All of it takes about four minutes; servers are in TMPDIR, which must be on a disk.
    Stream(StreamArgs),
    /// The claim server, single requests and batches of 100, beside a bare JSON echo and SET NX of Redis
    ///
    /// Every window has a server process of its own, and 64 connections on one thread here. Every answer is checked. All of it
    /// takes about two minutes.
    Server(ClaimsArgs),
    /// The bare JSON echo on this port, in a process of its own
    #[command(hide = true)]
    ClaimsEcho { port: u16 },
    /// A handler behind a layer, whose store is in a folder or at a URL, in a process of its own
    #[command(hide = true)]
    HttpServe { layer: Layer, location: String, port: u16 },
    /// One contestant's bytes a record, in a process of its own
    #[command(hide = true)]
    Footprint { contestant: String, keys: u64 },
    /// One step in the life of a store, in a process of its own
    #[command(hide = true)]
    FileTask(FileTaskArgs),
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct RunArgs {
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// Folder for the table, the chart and the JSON; by default bench/results of this workspace
    #[arg(long, value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct MemoryArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many keys are loaded before a window starts
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) keys: u64,
    /// How many calls a window has
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: u64,
    /// How many records the store of the latency measurement may hold
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub(crate) bound: u64,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct FileArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many done keys are loaded before a window starts; the growth part also uses five times as many
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_500_000))]
    pub(crate) keys: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 700, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Measure this part only; may be given more than once. Results are then written only with --results
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Part>,
    /// How many keys the stores of the growth part have, such as 1000000,10000000,30000000; by default KEYS and five times KEYS
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    pub(crate) growth: Vec<u64>,
    /// The program whose `keys list` and `stats` are measured; by default that of a release build of the main workspace, or the
    /// calls of the library if there is none
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) semel: Option<PathBuf>,
    /// Folder for the stores, which are removed at the end, on the disk to measure; by default bench/target
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

impl FileArgs {
    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// Cycles a second with 1, 64 and 1,024 callers, and the raw sync rate of the disk
    Throughput,
    /// How long calls wait at a fixed rate of requests, while records are swept and segments change
    OpenLoop,
    /// How long opening takes, after a clean stop and after kill -9
    Reopen,
    /// Bytes of memory a key, beside other stores
    Memory,
    /// How long it takes to remove all keys once they are past their retention
    Expiry,
    /// Memory, disk, opening, reading and cycles a second at several sizes
    Growth,
    /// Disk used by a store whose records come and go
    Disk,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many done keys are loaded before a window starts
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=1_500_000))]
    pub(crate) keys: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 800, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct PostgresArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) servers: ServerArgs,
    /// Measure this part only. Results are then written only with --results
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<PostgresPart>,
    /// How many keys the tables of the growth part have, such as 1000000,20000000
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    pub(crate) growth: Vec<u64>,
}

impl PostgresArgs {
    pub(crate) fn has(&self, part: PostgresPart) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PostgresPart {
    /// Cycles and replays a second with 1, 32 and 256 callers, beside others
    Throughput,
    /// Cycles a second and sweeping at several sizes, if --growth names any
    Growth,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Measure this part only; may be given more than once. Results are then written only with --results
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<HttpPart>,
    /// Measure only lines that contain this, such as `semel, memory store, new keys`, and what they are compared with
    #[arg(long, value_name = "TEXT")]
    pub(crate) line: Option<String>,
    /// The program whose proxy is measured; by default that of a release build of the main workspace
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) semel: Option<PathBuf>,
    /// Folder for stores and configurations, which are removed at the end, on a disk; by default bench/target
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

impl HttpArgs {
    pub(crate) fn parts(&self) -> impl Iterator<Item = HttpPart> {
        let is_wanted = |part: &HttpPart| self.only.is_empty() || self.only.contains(part);
        [HttpPart::Layer, HttpPart::Proxy, HttpPart::OpenLoop, HttpPart::Idle].into_iter().filter(is_wanted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HttpPart {
    /// The handler alone, and behind layers
    Layer,
    /// Proxies before the handler
    Proxy,
    /// Requests that do not wait for answers, at shares of what was reached
    OpenLoop,
    /// Thousands of connections that send nothing
    Idle,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many events have a receipt before a window starts, in each store
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=400_000))]
    pub(crate) events: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_200, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Folder for the file store, which is removed at the end, on a disk; by default bench/target
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct ClaimsArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunArgs,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// The program whose server is measured; by default that of a release build of the main workspace
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) semel: Option<PathBuf>,
    /// Folder for stores, which are removed at the end, on a disk; by default bench/target
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FileTaskArgs {
    pub(crate) task: Task,
    pub(crate) store: Store,
    pub(crate) folder: PathBuf,
    /// How many keys it has, or is to have
    pub(crate) keys: u64,
    /// How many rounds, if it is to be measured
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    pub(crate) window_ms: u64,
    /// The first key that no task claimed before
    pub(crate) first: u64,
}

pub(crate) fn parse() -> Command {
    CommandLine::parse().command
}

/// The name of a value on the command line.
pub(crate) fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
