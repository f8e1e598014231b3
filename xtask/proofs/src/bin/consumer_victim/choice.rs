//! What it is told on its command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::Fallible;
use crate::effects::Effects;
use crate::steps::Fate;

/// A consumer that dies at a step.
#[derive(Debug, Parser)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Publish every line of a file.
    Publish {
        /// `nats://HOST:PORT/STREAM`, or `amqp://…/%2f#QUEUE`.
        origin: String,
        file: PathBuf,
    },
    /// Make the tables in PostgreSQL.
    Prepare { url: String },
    /// Tell what is in the store, hear what to do about it, and consume.
    Run(Life),
}

#[derive(Debug, Args)]
pub(crate) struct Life {
    /// A folder, or the URL of PostgreSQL.
    #[arg(long)]
    pub(crate) store: String,
    /// A file of lines, or what events were published to.
    #[arg(long)]
    pub(crate) origin: String,
    #[arg(long)]
    pub(crate) pipeline: String,
    /// How many events there are: their ids are the numbers below this one.
    #[arg(long)]
    pub(crate) events: u64,
    /// Where plain effects go: a line each.
    #[arg(long)]
    pub(crate) effects: PathBuf,
    #[arg(long)]
    pub(crate) handler: Handler,
    #[arg(long)]
    pub(crate) lapse: Policy,
    /// Where it dies, as `STEP:TIMES`, or `anytime:MICROSECONDS`.
    #[arg(long)]
    pub(crate) fate: Option<Fate>,
    /// Control: do it in the wrong order.
    #[arg(long)]
    pub(crate) sabotage: Option<Sabotage>,
}

impl Life {
    pub(crate) fn effects(&self) -> Fallible<Effects> {
        Effects::open(&self.effects)
    }
}

/// What an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Handler {
    /// A line in a file.
    Plain,
    /// A row in PostgreSQL, in the transaction of the receipt.
    Transaction,
}

/// What a lapsed lease means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    Rerun,
    Hold,
}

/// What is done in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// The offset is committed before the effect.
    CommitFirst,
    /// Events are acknowledged when they are delivered.
    AcknowledgeFirst,
    /// The effect is beside the transaction of its receipt.
    Apart,
}
