//! The store as a whole: sweep, stats, watch, check; and what shells want.

use std::path::PathBuf;
use std::time::Duration;

use super::Command;
use super::place::Place;
use super::refused::{Meaning, at_least_one, refused};
use crate::check::Check;
use crate::shell::Shell;
use crate::stats::Stats;
use crate::sweep::Sweep;
use crate::terminal::span;
use crate::watch::Watch;

#[derive(Debug, clap::Args)]
pub(super) struct TypedSweep {
    /// How many records to remove at most; all that are due unless said
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What only needs to know how to answer.
#[derive(Debug, clap::Args)]
pub(super) struct TypedAnswer {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedWatch {
    /// From one look to the next
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::parse)]
    every: Duration,
    /// End after so many looks
    #[arg(long, value_name = "N")]
    looks: Option<usize>,
    /// End after this time
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse)]
    span: Option<Duration>,
    /// Print one JSON object a look
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedCompletions {
    /// The shell
    shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedMan {
    /// Write a page for each command into this folder, instead of the main one to standard output
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

impl TypedSweep {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let limit = self.limit.map(|limit| at_least_one("--limit", limit)).transpose()?;
        let limit = limit.map(std::num::NonZero::get);
        Ok(Command::Sweep(Sweep { store: place.store()?, limit, json: self.json }))
    }
}

impl TypedAnswer {
    pub(super) fn stats(self, place: &Place) -> Meaning<Command> {
        Ok(Command::Stats(Stats { store: place.store()?, json: self.json }))
    }

    pub(super) fn check(self, place: &Place) -> Meaning<Command> {
        Ok(Command::Check(Check { store: place.store()?, json: self.json }))
    }
}

impl TypedWatch {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        if self.every < Duration::from_millis(10) {
            return Err(refused("--every is under 10ms; every look reads the whole store"));
        }
        let looks = self.looks.map(|looks| at_least_one("--looks", looks)).transpose()?;
        let looks = looks.map(|looks| looks.get() as u64);
        let Self { every, span, json, .. } = self;
        Ok(Command::Watch(Watch { store: place.store()?, every, looks, span, json }))
    }
}

impl TypedCompletions {
    pub(super) fn meaning(self) -> Command {
        Command::Shell(Shell::Completions(self.shell))
    }
}

impl TypedMan {
    pub(super) fn meaning(self) -> Command {
        Command::Shell(self.to.map_or(Shell::ManPage, Shell::ManPages))
    }
}
