//! What a server is to be told: read anew whenever somebody asks, so that changed tokens can be taken up while it runs.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use semel_config::{Errors, Source};
use semel_server::config::{ServerMeaning, ServerOverrides, server};

use crate::terminal::{number, out};

/// A file, and what the command line says before it.
#[derive(Clone, Debug)]
pub(crate) struct ServePlan {
    pub(crate) file: Option<PathBuf>,
    pub(crate) overrides: ServerOverrides,
}

impl ServePlan {
    /// What the file means now, with what the command line says; or all that is wrong with it, a line each.
    pub(crate) fn meaning(&self) -> Result<ServerMeaning> {
        self.source().and_then(|source| server(&source, &self.overrides)).map_err(|errors| told(&errors))
    }

    /// Prints what it means, as a file that means the same.
    pub(crate) fn check(&self) -> Result<()> {
        let meaning = self.meaning()?;
        for warning in &meaning.warnings {
            eprintln!("semel serve: {warning}");
        }
        out::print(&meaning.effective())
    }

    fn source(&self) -> Result<Source, Errors> {
        match &self.file {
            Some(path) => Source::read(path),
            None => Ok(Source::none("semel serve")),
        }
    }
}

fn told(errors: &Errors) -> anyhow::Error {
    let count = number::counted(errors.faults().len() as u64, "setting");
    anyhow!("{count} cannot be:\n{errors}")
}
