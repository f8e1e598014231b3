//! What a proxy is to be told: read anew whenever somebody asks, so that a changed file can be taken up while it runs.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use semel_config::Errors;
use semel_proxy::ProxySettings;
use semel_proxy::config::{Config, Overrides};

use crate::terminal::{number, out};

/// A file, and what the command line says before it.
#[derive(Clone, Debug)]
pub(crate) struct ProxyPlan {
    pub(crate) file: Option<PathBuf>,
    pub(crate) overrides: Overrides,
}

impl ProxyPlan {
    /// What the file means now, with what the command line says; or all that is wrong with it, a line each.
    pub(crate) fn settings(&self) -> Result<ProxySettings> {
        self.config().and_then(|config| config.settings()).map_err(|errors| told(&errors))
    }

    /// Prints what it means, as a file that means the same.
    pub(crate) fn check(&self) -> Result<()> {
        out::print(&self.config().and_then(|config| config.effective()).map_err(|errors| told(&errors))?)
    }

    fn config(&self) -> Result<Config, Errors> {
        let config = match &self.file {
            Some(path) => Config::read(path)?,
            None => Config::none("semel proxy"),
        };
        Ok(config.with_overrides(self.overrides.clone()))
    }
}

fn told(errors: &Errors) -> anyhow::Error {
    let count = number::counted(errors.faults().len() as u64, "setting");
    anyhow!("{count} cannot be:\n{errors}")
}
