//! Arguments in two steps: what was typed, then what it means.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Plan, Report};
use crate::file::Look;
use crate::store::Address;

/// The most keys that one measurement may ask for: beyond it, memory is what is measured.
const KEYS_MAX: usize = 50_000_000;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Command {
    /// Measure a store.
    Bench(Plan),
    /// Look at every byte of an embedded store.
    File(Look),
}

/// semel makes work happen once. A caller claims a key; exactly one caller gets to run, and everyone
/// else is told what happened: the stored outcome is replayed, or the key is busy.
///
/// Programs use it as a library. This command line is for the people who run them.
#[derive(Debug, Parser)]
#[command(
    name = "semel",
    version,
    after_help = "Examples:\n  \
                  semel bench                                      what can the memory store do here?\n  \
                  semel bench --store memory: --keys 1000000       the same with a million keys\n  \
                  semel bench --store file:bench-data --callers 64 the same on this machine's disk\n  \
                  semel bench --callers 64 --json | jq .runs       for scripts\n  \
                  semel file verify semel-data                     is every byte as it was written?\n\n\
                  `semel help COMMAND` explains every option and every number."
)]
struct Typed {
    #[command(subcommand)]
    command: TypedCommand,
}

#[derive(Debug, Subcommand)]
enum TypedCommand {
    /// Measure what a store can do on this machine
    ///
    /// First every key is claimed and completed once (a cycle). Then the same keys are claimed again in
    /// random order, and each must be replayed. Cycles and replays are counted per second; p50, p99 and
    /// max say how long a single claim, complete or replay took.
    #[command(after_help = "Stores:\n  \
                            memory:        inside this process; gone when it ends\n  \
                            file:FOLDER    on this machine's disk; survives power loss. Use a new folder: keys\n                 \
                            that are there already are not run again, and end the measurement")]
    Bench(TypedBench),
    /// Look at every byte of an embedded store, or copy what is whole
    #[command(subcommand)]
    File(TypedFile),
}

#[derive(Debug, Subcommand)]
enum TypedFile {
    /// Read every byte of a store and say what is whole; changes nothing
    ///
    /// Ends with code 1 if anything that was acknowledged is damaged. A last write that a crash cut off is no damage:
    /// nobody was told that it happened. The store must not be in use.
    Verify {
        /// The folder of the store
        folder: PathBuf,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Copy everything that is whole into a new store; the damaged one is only read
    ///
    /// Use it when a store refuses to open. A key whose last word is damaged is missing in the copy, or back in an earlier
    /// state; the damaged places are listed, and the command ends with code 1 if there are any.
    Repair {
        /// The folder of the damaged store
        folder: PathBuf,
        /// An empty or missing folder for the copy
        #[arg(long, value_name = "NEW-FOLDER")]
        to: PathBuf,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct TypedBench {
    /// The store to measure
    #[arg(long, value_name = "ADDRESS", default_value = "memory:")]
    store: String,
    /// How many keys to claim and complete
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: usize,
    /// How long to replay them
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    seconds: f64,
    /// How many callers ask at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    callers: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// What the command line of this process means; ends the process, with code 2, if it means nothing.
pub(crate) fn parse() -> Command {
    Typed::parse().meaning().unwrap_or_else(|error| error.exit())
}

impl Typed {
    fn meaning(self) -> Result<Command, clap::Error> {
        match self.command {
            TypedCommand::Bench(bench) => bench.meaning().map(Command::Bench),
            TypedCommand::File(TypedFile::Verify { folder, json }) => {
                Ok(Command::File(Look { folder, copy_to: None, json }))
            }
            TypedCommand::File(TypedFile::Repair { folder, to, json }) => {
                Ok(Command::File(Look { folder, copy_to: Some(to), json }))
            }
        }
    }
}

impl TypedBench {
    fn meaning(self) -> Result<Plan, clap::Error> {
        let store = self.store.parse::<Address>().map_err(|error| refused(&error.to_string()))?;
        let keys = at_least_one("--keys", self.keys)?;
        if keys.get() > KEYS_MAX {
            return Err(refused(&format!("--keys is {keys}; {KEYS_MAX} at most")));
        }
        let replays_for = Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|span| *span <= Duration::from_hours(1))
            .ok_or_else(|| refused("--seconds takes a number from 0 to 3600, such as 0.5"))?;
        let callers = at_least_one("--callers", self.callers)?;
        let report = if self.json { Report::Json } else { Report::Table };
        Ok(Plan { store, keys, replays_for, callers, report })
    }
}

fn at_least_one(option: &str, value: usize) -> Result<NonZeroUsize, clap::Error> {
    NonZeroUsize::new(value).ok_or_else(|| refused(&format!("{option} is 0; give at least 1")))
}

fn refused(message: &str) -> clap::Error {
    Typed::command().error(ErrorKind::ValueValidation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(line: &str) -> Result<Command, clap::Error> {
        Typed::try_parse_from(line.split(' ')).and_then(Typed::meaning)
    }

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Typed::command().debug_assert();
    }

    #[test]
    fn what_is_typed_means_what_it_says() {
        let line = "semel bench --keys 7 --seconds 0.5 --callers 2 --json";
        let Command::Bench(plan) = meaning(line).expect("is fine") else {
            panic!("{line} measures");
        };
        assert_eq!((plan.keys.get(), plan.callers.get()), (7, 2));
        assert_eq!((plan.replays_for, plan.report), (Duration::from_millis(500), Report::Json));
    }

    #[test]
    fn a_repair_needs_somewhere_to_go() {
        assert!(meaning("semel file repair data").is_err());
        let Command::File(look) = meaning("semel file repair data --to copy").expect("is fine") else {
            panic!("repair is about files");
        };
        let copy_to = Some("copy".into());
        assert_eq!(look, Look { folder: "data".into(), copy_to, json: false });
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for line in
            ["--keys 0", "--callers 0", "--seconds -1", "--seconds nan", "--store lost:", "--keys 50000001"]
        {
            assert!(meaning(&format!("semel bench {line}")).is_err(), "{line}");
        }
    }
}
