//! Verify and repair, as they are asked for.

use std::path::PathBuf;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use semel_file::check::{Findings, repair, verify};

use super::account;
use crate::terminal::out;

/// What is to be looked at, and what for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The store.
    pub(crate) folder: PathBuf,
    /// Where to copy what is whole, if it is to be copied.
    pub(crate) copy_to: Option<PathBuf>,
    /// Whether scripts read the answer.
    pub(crate) json: bool,
}

/// Looks at every byte, and says what was found. Damage fails the command, also where it could be repaired: somebody
/// has to read what is missing.
pub(crate) fn run(look: &Look) -> Result<()> {
    let bar = progress();
    let see = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let findings = match &look.copy_to {
        None => verify(&look.folder, see)?,
        Some(to) => repair(&look.folder, to, see)?,
    };
    bar.finish_and_clear();
    if look.json {
        out::json(&account::json(&findings))?;
    } else {
        out::print(&account::table(look, &findings))?;
    }
    match verdict(look, &findings) {
        None => Ok(()),
        Some(verdict) => bail!("{verdict}"),
    }
}

fn verdict(look: &Look, findings: &Findings) -> Option<String> {
    if findings.is_whole() {
        return None;
    }
    let (count, folder) = (findings.damages.len(), look.folder.display());
    Some(match &look.copy_to {
        None => format!(
            "{count} damaged place(s) in {folder}; copy what is whole with `semel file repair {folder} --to NEW-FOLDER`"
        ),
        Some(to) => format!(
            "{} holds what is whole of {folder}; {count} damaged place(s) are missing in it: a key whose last word was \
             there may run again or be back in an earlier state, so check the work of that time by hand",
            to.display()
        ),
    })
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::new(0).with_message("segments");
    if let Ok(style) = ProgressStyle::with_template("{msg:8} {wide_bar} {pos}/{len}") {
        bar.set_style(style);
    }
    bar
}
