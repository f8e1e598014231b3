//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use serde::Serialize;

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
    /// One contestant's bytes a record, in a process of its own
    #[command(hide = true)]
    Footprint(FootprintAsk),
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

/// Whose bytes, and how many records.
#[derive(Debug, clap::Args)]
pub(crate) struct FootprintAsk {
    /// Its name in the table
    pub(crate) contestant: String,
    /// How many records
    pub(crate) keys: u64,
}

/// What the command line of this process means.
pub(crate) fn parse() -> Command {
    Typed::parse().command
}
