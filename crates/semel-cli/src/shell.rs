//! Completions and man pages, made from the definition of the arguments.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::args;
use crate::terminal::out;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut args::definition(), "semel", &mut script);
        out::print(&String::from_utf8_lossy(&script))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder, instead of the main one to standard output
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(self) -> Result<()> {
        let Some(folder) = self.to else {
            let mut page = Vec::new();
            clap_mangen::Man::new(args::definition()).render(&mut page)?;
            return out::print(&String::from_utf8_lossy(&page));
        };
        let shown = folder.display();
        std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(args::definition(), &folder))
            .with_context(|| format!("cannot write man pages to {shown}; check the folder"))?;
        out::line(&format!("The man pages are in {shown}: `man -l {shown}/semel.1`"))
    }
}
