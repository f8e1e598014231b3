//! `semel file`.

use std::path::PathBuf;

use clap::Subcommand;

use super::Command;
use crate::file::Look;

#[derive(Debug, Subcommand)]
pub(super) enum TypedFile {
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

impl TypedFile {
    pub(super) fn meaning(self) -> Command {
        Command::File(match self {
            Self::Verify { folder, json } => Look { folder, copy_to: None, json },
            Self::Repair { folder, to, json } => Look { folder, copy_to: Some(to), json },
        })
    }
}
