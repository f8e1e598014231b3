//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::file::{Task, Who};
use crate::http::Layered;

/// Side-by-side measurements of semel and of what projects write themselves.
#[derive(Debug, Parser)]
#[command(name = "semel-bench")]
struct Typed {
    #[command(subcommand)]
    command: Command,
}

/// What is to be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The engine and the memory store, beside a `DashMap` as it is usually written and a lean one
    ///
    /// Every round builds each contestant anew, loads it with the keys, and measures one window of replays
    /// and one of cycles; rounds are interleaved, and the median counts. Windows are counted in calls and
    /// not in seconds, so that a fast contestant does not have to work on a larger map than a slow one.
    Memory(Settings),
    /// The embedded durable store, beside fjall, redb and SQLite; every answer waits for the disk
    ///
    /// Every contestant is loaded once and stays open; each round measures a window of every one with 1, 64 and 1,024
    /// callers; rounds are interleaved, and the median counts. What happens once in a store's life (opening, sweeping,
    /// growing) is measured in processes of its own. All of it takes about a quarter of an hour.
    File(FileSettings),
    /// The store on PostgreSQL, beside upsert-select-update call by call, and the store of cratestack-sqlx
    ///
    /// A server of its own is started on free ports, and gone afterwards; TMPDIR says where its data are, which must be on
    /// a disk. Each round measures a window of every contestant with 1, 32 and 256 callers, of cycles and of replays; rounds
    /// are interleaved, and the median counts. At the end every key is counted. All of it takes about three minutes.
    Postgres(ServerSettings),
    /// The store on Redis, beside SET NX, GET and SET call by call; with appendfsync everysec and always
    ///
    /// In the same manner as for PostgreSQL, on two servers; it takes up to four minutes.
    Redis(ServerSettings),
    /// The layer around a handler and the proxy before it, beside the bare handler, other layers, and nginx
    ///
    /// Every window has processes of its own: a handler, what is around or before it, and clients on one thread here; rounds
    /// are interleaved, and the median counts. Every answer is checked, and how often the handler ran. All of it takes
    /// about four minutes.
    Http(HttpSettings),
    /// Events through a pipeline: on every store, in batches of 1, 100 and 1,000, new ones and duplicates
    ///
    /// The handler does nothing, and the offset is committed once a batch. Each round measures a window of every store,
    /// batch and kind; rounds are interleaved, and the median counts. What was told is checked batch by batch, and every
    /// receipt once more at the end. All of it takes about four minutes; servers are in TMPDIR, which must be on a disk.
    Stream(StreamSettings),
    /// The claim server, single requests and batches of 100, beside a bare JSON echo and SET NX of Redis
    ///
    /// Every window has a server process of its own, and 64 connections on one thread here; rounds are interleaved, and the
    /// median counts. Every answer is checked. All of it takes about two minutes.
    Server(ClaimsSettings),
    /// The bare JSON echo, in a process of its own
    #[command(hide = true)]
    ClaimsEcho,
    /// A handler behind a layer, in a process of its own
    #[command(hide = true)]
    HttpServe(HttpServeAsk),
    /// One contestant's bytes a record, in a process of its own
    #[command(hide = true)]
    Footprint(FootprintAsk),
    /// One step in the life of a store, in a process of its own
    #[command(hide = true)]
    FileTask(FileAsk),
}

/// How the measurement is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct Settings {
    /// How many keys are there before a window starts
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) keys: u64,
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// How many calls a window has
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: u64,
    /// How many records the store of the latency measurement may hold
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub(crate) bound: u64,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

/// How the measurement of the durable store is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct FileSettings {
    /// How many done keys are there before a window starts; some parts use half as many, or five times as many
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_500_000))]
    pub(crate) keys: u64,
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 700, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Measure this part only; may be given more than once, and then nothing is written unless --results says where
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Part>,
    /// Where the stores are made, and removed at the end: on the disk to be measured; bench/target unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

/// How the measurement of a store on a server is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct ServerSettings {
    /// How many done keys are there before a window starts
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=1_500_000))]
    pub(crate) keys: u64,
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 800, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

impl FileSettings {
    /// Whether this part is to be measured.
    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// How the measurement over HTTP is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct HttpSettings {
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Measure this part only; may be given more than once, and then nothing is written unless --results says where
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<HttpPart>,
    /// Measure lines that contain this only, such as `semel, memory store, new keys`, and whom they are compared with
    #[arg(long, value_name = "TEXT")]
    pub(crate) line: Option<String>,
    /// The program whose proxy is measured; that of a release build of the main workspace unless said
    #[arg(long, value_name = "PROGRAM")]
    #[serde(skip)]
    pub(crate) semel: Option<PathBuf>,
    /// Where stores and configurations are, and removed at the end: on a disk; bench/target unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

impl HttpSettings {
    /// Whether everything is to be measured.
    pub(crate) fn is_whole(&self) -> bool {
        self.only.is_empty() && self.line.is_none()
    }

    /// The parts that are to be measured.
    pub(crate) fn parts(&self) -> impl Iterator<Item = HttpPart> {
        let is_wanted = |part: &HttpPart| self.only.is_empty() || self.only.contains(part);
        [HttpPart::Layer, HttpPart::Proxy].into_iter().filter(is_wanted)
    }
}

/// How the measurement of pipelines is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct StreamSettings {
    /// How many events have a receipt before a window starts, in each store
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=400_000))]
    pub(crate) events: u64,
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_200, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// Where the file store is made, and removed at the end: on a disk; bench/target unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

/// How the measurement of the claim server is to be.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub(crate) struct ClaimsSettings {
    /// How many rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) window_ms: u64,
    /// The program whose server is measured; that of a release build of the main workspace unless said
    #[arg(long, value_name = "PROGRAM")]
    #[serde(skip)]
    pub(crate) semel: Option<PathBuf>,
    /// Where stores are, and removed at the end: on a disk; bench/target unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Where the table, the chart and the JSON are written; bench/results of this workspace unless said
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub(crate) results: Option<PathBuf>,
}

/// A part of the measurement over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HttpPart {
    /// The handler alone, and behind layers
    Layer,
    /// Proxies before the handler
    Proxy,
}

/// What is to be served.
#[derive(Debug, clap::Args)]
pub(crate) struct HttpServeAsk {
    /// What is around the handler
    pub(crate) layered: Layered,
    /// The folder or the URL of its store, if it has one
    pub(crate) place: Option<String>,
}

/// A part of the measurement of the durable store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// Cycles a second with 1, 64 and 1,024 callers, and the raw sync rate of the disk
    Throughput,
    /// How long opening takes, after a clean stop and after kill -9
    Reopen,
    /// Bytes of memory a key
    Memory,
    /// How long it takes to remove all keys once they are past their retention
    Expiry,
    /// Cycles a second with ten times as many keys
    Growth,
    /// Disk used by a store whose records come and go
    Disk,
}

/// Whose bytes, and how many records.
#[derive(Debug, clap::Args)]
pub(crate) struct FootprintAsk {
    /// Its name in the table
    pub(crate) contestant: String,
    /// How many records
    pub(crate) keys: u64,
}

/// What to do with whose store.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FileAsk {
    /// What to do
    pub(crate) task: Task,
    /// Whose store
    pub(crate) who: Who,
    /// Where it is
    pub(crate) folder: PathBuf,
    /// How many keys it has, or is to have
    pub(crate) keys: u64,
    /// How many rounds, if it is to be measured
    pub(crate) rounds: u64,
    /// How many milliseconds a window has
    pub(crate) window_ms: u64,
}

/// What the command line of this process means.
pub(crate) fn parse() -> Command {
    Typed::parse().command
}
