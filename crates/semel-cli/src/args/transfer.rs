//! `semel export` and `semel import`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Command;
use super::place::Place;
use super::refused::Meaning;
use crate::keys::IdPrefix;
use crate::transfer::{Completeness, Export, IfRunning, Import, Start};

#[derive(Debug, clap::Args)]
pub(super) struct TypedExport {
    /// Write to this file instead of standard output; it must not be there yet
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Go on with a file that was cut, behind its last whole line
    #[arg(long, requires = "to", conflicts_with = "after")]
    resume: bool,
    /// Only ids behind this one
    #[arg(long, value_name = "ID")]
    after: Option<IdPrefix>,
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedImport {
    /// Read from this file instead of standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What becomes of records that were running when they were exported
    #[arg(long, value_name = "WHAT", default_value = "hold")]
    running: TypedRunning,
    /// Take what there is of an export that was cut
    #[arg(long)]
    partial: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedRunning {
    /// Nobody runs them before somebody decides
    Hold,
    /// The next claim runs them: only if you know that nothing runs any more
    Release,
}

impl TypedExport {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let start = match (self.resume, self.after) {
            (true, _) => Start::Resume,
            (false, Some(after)) => Start::After(after),
            (false, None) => Start::Whole,
        };
        Ok(Command::Export(Export { store: place.store()?, to: self.to, start }))
    }
}

impl TypedImport {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let if_running = match self.running {
            TypedRunning::Hold => IfRunning::Hold,
            TypedRunning::Release => IfRunning::Release,
        };
        let completeness = if self.partial { Completeness::Partial } else { Completeness::Whole };
        let from = self.from.filter(|path| path.as_os_str() != "-");
        Ok(Command::Import(Import { store: place.store()?, from, if_running, completeness, json: self.json }))
    }
}
