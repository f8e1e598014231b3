//! `semel keys`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand};
use semel::record::StateWord;
use semel::{Key, OutcomeKind};

use super::Command;
use super::place::Place;
use super::refused::{Meaning, at_least_one, refused};
use super::scope::{Scope, scope};
use crate::keys::{Bytes, Filtered, How, IdPrefix, List, Release, Resolve, Show, Which};
use crate::terminal::question::Consent;
use crate::terminal::span;

/// Why a key was released, unless somebody says.
const REASON: &str = "released by hand";

#[derive(Debug, Subcommand)]
pub(super) enum TypedKeys {
    /// List records, a line each
    ///
    /// In the order of their ids, a page at a time. `left` is what is left of the lease of a running record, and of the retention
    /// of a settled one. With --json, one object a line, and nothing else.
    #[command(after_help = "Examples:\n  \
        semel keys list --state held                        what waits for a person\n  \
        semel keys list --state running --older-than 10m    what has been running for too long\n  \
        semel keys list --scope acme/eu --operation charge  one tenant's charges\n  \
        semel keys list --all --json | jq -r .name          every name there is")]
    List(Box<TypedList>),
    /// Show the whole life of one record, and what may be done about it
    #[command(after_help = "Examples:\n  \
        semel keys show 3f2a9c0d                            by the beginning of its id\n  \
        semel keys show --scope acme --operation charge --name order-1042\n  \
        semel keys show 3f2a9c0d --outcome                  with what every retry gets")]
    Show {
        #[command(flatten)]
        key: TypedKey,
        /// Show the bytes of the outcome: as text, or as a hex dump; base64 in JSON
        #[arg(long)]
        outcome: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Have the next claim of a running or held key run; asks first
    ///
    /// For a run that you know is dead. Releasing stops nobody: a run that is still going on goes on beside the next one until it
    /// notices, and its complete is refused as lost. A done record is never touched.
    #[command(after_help = "Examples:\n  \
        semel keys release 3f2a9c0d                         shows what it means, and asks\n  \
        semel keys release 3f2a9c0d --yes --reason 'host-7 burnt down'")]
    Release {
        #[command(flatten)]
        key: TypedKey,
        /// Why, for whoever looks at the record next
        #[arg(long, value_name = "TEXT", default_value = REASON)]
        reason: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Settle a held key: its effect landed, or it did not; asks first
    ///
    /// A key is held when a run may or may not have had its effect, and nobody runs it again before somebody has looked. If the
    /// effect landed, give the outcome that every retry is to get; if it did not, release it.
    #[command(group(ArgGroup::new("how").required(true).args(["outcome_file", "release"])))]
    #[command(after_help = "Examples:\n  \
        semel keys resolve 3f2a9c0d --outcome-file charge.json    it landed: retries get this\n  \
        semel keys resolve 3f2a9c0d --release                     it did not: the next claim runs")]
    Resolve {
        #[command(flatten)]
        key: TypedKey,
        /// The effect landed: every retry gets the bytes of this file
        #[arg(long, value_name = "FILE")]
        outcome_file: Option<PathBuf>,
        /// How the run ended: success, failure, or a word of your own
        #[arg(long, value_name = "WORD", default_value = "success", conflicts_with = "release")]
        kind: String,
        /// The effect did not land: the next claim runs
        #[arg(long)]
        release: bool,
        /// Why, for whoever looks at the record next
        #[arg(long, value_name = "TEXT", default_value = REASON, conflicts_with = "outcome_file")]
        reason: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedList {
    /// Only keys whose scope begins with these parts
    #[arg(long, value_name = "A/B", value_parser = scope)]
    scope: Option<Scope>,
    /// Only this operation
    #[arg(long, value_name = "WORD")]
    operation: Option<String>,
    /// Only this name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Only these states: running, done, released, held
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = state)]
    state: Vec<StateWord>,
    /// Only what was first seen longer ago than this
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    older_than: Option<Duration>,
    /// How many records at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Go on behind this id: what the last page said
    #[arg(long, value_name = "ID")]
    after: Option<IdPrefix>,
    /// All of them, however many
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// With --json: the bytes of outcomes, too, as base64
    #[arg(long, requires = "json")]
    outcome: bool,
}

/// Which record is meant.
#[derive(Debug, clap::Args)]
pub(super) struct TypedKey {
    /// The beginning of the record's id, as `semel keys list` shows it
    #[arg(value_name = "ID", conflicts_with_all = ["scope", "operation", "name"], required_unless_present = "operation")]
    id: Option<IdPrefix>,
    /// The parts of the key's scope, outermost first; `\/` for a slash inside a part
    #[arg(long, value_name = "A/B", value_parser = scope, requires = "operation")]
    scope: Option<Scope>,
    /// The key's operation
    #[arg(long, value_name = "WORD", requires = "name")]
    operation: Option<String>,
    /// The key's name
    #[arg(long, value_name = "TEXT", requires = "operation")]
    name: Option<String>,
}

impl TypedKeys {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let store = place.store()?;
        let consent = |yes| if yes { Consent::Given } else { Consent::Ask };
        Ok(match self {
            Self::List(list) => return list.meaning(place).map(Command::List),
            Self::Show { key, outcome, json } => {
                Command::Show(Show { store, which: key.meaning()?, bytes: bytes(outcome), json })
            }
            Self::Release { key, reason, yes } => {
                Command::Release(Release { store, which: key.meaning()?, reason, consent: consent(yes) })
            }
            Self::Resolve { key, outcome_file, kind, release: _, reason, yes } => {
                let how = match outcome_file {
                    Some(file) => How::Done { file, kind: OutcomeKind::from_word(&kind) },
                    None => How::Release { reason },
                };
                Command::Resolve(Resolve { store, which: key.meaning()?, how, consent: consent(yes) })
            }
        })
    }
}

impl TypedList {
    fn meaning(self, place: &Place) -> Meaning<List> {
        let limit = at_least_one("--limit", self.limit)?.get();
        Ok(List {
            store: place.store()?,
            filter: Filtered {
                scope: self.scope.unwrap_or_default().0,
                operation: self.operation.map(Into::into),
                name: self.name.map(Into::into),
                states: self.state,
                older_than: self.older_than,
            },
            limit: (!self.all).then_some(limit),
            after: self.after,
            json: self.json,
            bytes: bytes(self.outcome),
        })
    }
}

impl TypedKey {
    fn meaning(self) -> Meaning<Which> {
        match (self.id, self.operation, self.name) {
            (Some(id), _, _) => Ok(Which::Id(id)),
            (None, Some(operation), Some(name)) => {
                let key = Key::scoped(self.scope.unwrap_or_default().0, &operation, &name);
                key.map(Which::Key).map_err(|error| refused(&error.to_string()))
            }
            _ => Err(refused("which key? Give its id, or --operation and --name")),
        }
    }
}

fn bytes(shown: bool) -> Bytes {
    if shown { Bytes::Shown } else { Bytes::Hidden }
}

fn state(word: &str) -> Result<StateWord, String> {
    let known = || StateWord::ALL.map(StateWord::as_str).join(", ");
    StateWord::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| format!("`{word}` is no state; there are {}", known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_none_is_told_which_there_are() {
        assert_eq!(state("held"), Ok(StateWord::Held));
        assert!(state("stuck").expect_err("is none").contains("running, done, released, held"));
    }
}
