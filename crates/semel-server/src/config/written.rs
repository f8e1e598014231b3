//! What was written: a file's text, with what the command line said. `settings` says what it means.

use std::path::Path;

use toml::de::DeTable;

use super::effective;
use super::faults::{Errors, Faults};
use super::overrides::Overrides;
use super::root::{self, Meaning};
use super::server::{self, ServerMeaning, ServerOverrides};
use super::table::Table;
use crate::proxy::ProxySettings;

/// What was written, in a file or on the command line.
#[derive(Clone, Debug)]
pub struct Config {
    name: String,
    text: String,
    overrides: Overrides,
}

impl Config {
    /// No file: only what the command line says. The name of the command is for errors.
    pub fn none(command: &str) -> Self {
        Self { name: command.to_owned(), text: String::new(), overrides: Overrides::default() }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Errors> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Errors::whole(&name, format!("cannot be read: {error}; name the file with --config"))
        })?;
        Self::parse(&text, &name)
    }

    /// The text of a file, if it is TOML at all. The name is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        let (_, wrongs) = DeTable::parse_recoverable(text);
        let faults = Faults::of(text);
        for wrong in wrongs {
            let message = format!("is not TOML: {}", wrong.message());
            match wrong.span() {
                Some(span) => faults.at(&span, message),
                None => faults.missing(message),
            }
        }
        let config = Self { name: name.to_owned(), text: text.to_owned(), overrides: Overrides::default() };
        faults.judged(name, Some(config))
    }

    /// The same, with what the command line said.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// What it all means, or everything that is wrong with it.
    pub fn settings(&self) -> Result<ProxySettings, Errors> {
        self.meaning().map(|meaning| meaning.settings)
    }

    /// What it all means, as a file that means the same. Secrets are not in it, only where they are.
    pub fn effective(&self) -> Result<String, Errors> {
        self.meaning().map(|meaning| effective::written(&meaning))
    }

    /// What it means for a claim server, with what the command line said; or everything that is wrong with it.
    pub fn server(&self, overrides: &ServerOverrides) -> Result<ServerMeaning, Errors> {
        let (file, _) = DeTable::parse_recoverable(&self.text);
        let faults = Faults::of(&self.text);
        let written = server::written(Table::root(&file, &faults), overrides);
        faults.judged(&self.name, Some(written))?.meaning(&self.name, overrides)
    }

    fn meaning(&self) -> Result<Meaning, Errors> {
        let (file, _) = DeTable::parse_recoverable(&self.text);
        let faults = Faults::of(&self.text);
        let meaning = root::meaning(Table::root(&file, &faults), &self.overrides);
        faults.judged(&self.name, meaning)
    }
}
