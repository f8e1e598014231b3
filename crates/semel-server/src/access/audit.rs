//! Every action of an operator, written down before it is done.

use semel::record::StateWord;
use semel::{Key, Result as Semel};

/// Where actions are written down.
#[derive(Debug, Default)]
pub struct Audit;

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Takes a run away, or lets a held record run again.
    Release,
    /// Settles a held record with an outcome.
    Complete,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// It is about to be done.
    Asked,
    /// It was done.
    Done,
    /// The record had changed; nothing was done.
    Refused,
    /// Nobody knows: the store did not answer.
    Unknown,
}

/// One line of the log.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name of the token.
    pub caller: &'a str,
    /// What is done.
    pub action: Action,
    /// To what.
    pub key: &'a Key,
    /// The state that the operator saw.
    pub seen: StateWord,
    /// Why, in the operator's words.
    pub reason: &'a str,
    /// How far it got.
    pub result: Result,
}

impl Audit {
    /// To the program's own log only.
    pub fn to_log() -> Self {
        Self
    }

    /// Writes a line. What cannot be written down must not be done: an error here refuses the action.
    pub async fn note(&self, entry: Entry<'_>) -> Semel<()> {
        tracing::info!(?entry, "semel: audit");
        Ok(())
    }
}
