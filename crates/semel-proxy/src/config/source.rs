//! What was written: a file's text, with what the command line said. `settings` says what it means.

use std::path::Path;

use semel_config::{Errors, Source};

use super::overrides::Overrides;
use super::render;
use super::root::{self, Meaning};
use crate::settings::ProxySettings;

/// What was written, in a file or on the command line.
#[derive(Clone, Debug)]
pub struct Config {
    source: Source,
    overrides: Overrides,
}

impl From<Source> for Config {
    fn from(source: Source) -> Self {
        Self { source, overrides: Overrides::default() }
    }
}

impl Config {
    /// No file: only what the command line says. The name of the command is for errors.
    pub fn none(command: &str) -> Self {
        Source::none(command).into()
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Errors> {
        Source::read(path).map(Self::from)
    }

    /// The text of a file, if it is TOML at all. The name is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        Source::parse(text, name).map(Self::from)
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
        self.meaning().map(|meaning| render::written(&meaning))
    }

    fn meaning(&self) -> Result<Meaning, Errors> {
        self.source.judged(|root| root::meaning(root, &self.overrides))
    }
}
