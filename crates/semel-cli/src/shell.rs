//! Completions and man pages, made from the definition of the arguments.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::args;
use crate::terminal::out;

/// What is to be made.
#[derive(Debug)]
pub(crate) enum Shell {
    /// Completions for a shell.
    Completions(clap_complete::Shell),
    /// The man page of the whole command.
    ManPage,
    /// A man page for each command, in this folder.
    ManPages(PathBuf),
}

pub(crate) fn run(plan: &Shell) -> Result<()> {
    let mut command = args::definition();
    match plan {
        Shell::Completions(shell) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "semel", &mut script);
            out::print(&String::from_utf8_lossy(&script))
        }
        Shell::ManPage => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::print(&String::from_utf8_lossy(&page))
        }
        Shell::ManPages(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .with_context(|| {
                    format!("cannot write man pages to {}; check the folder", folder.display())
                })?;
            out::line(&format!("The man pages are in {}: `man -l {0}/semel.1`", folder.display()))
        }
    }
}
