//! `semel file`: for the day when an embedded store does not open.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Subcommand;
use semel_file::check::{Damage, Findings, repair, verify};
use serde_json::{Value, json};

use crate::terminal::{bar, out};

#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
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

impl FileCommand {
    /// Looks at every byte, and says what was found. Damage fails the command, also where it could be repaired: somebody
    /// has to read what is missing.
    pub(crate) fn run(self) -> Result<()> {
        let (folder, copy_to, json) = match self {
            Self::Verify { folder, json } => (folder, None, json),
            Self::Repair { folder, to, json } => (folder, Some(to), json),
        };
        let bar = bar::plain(0, "segments", "{msg:8} {wide_bar} {pos}/{len}");
        let see = |done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        };
        let findings = match &copy_to {
            None => verify(&folder, see)?,
            Some(to) => repair(&folder, to, see)?,
        };
        bar.finish_and_clear();
        if json {
            out::json(&self::json(&findings))?;
        } else {
            out::print(&table(copy_to.as_deref(), &findings))?;
        }
        if findings.is_whole() {
            return Ok(());
        }
        bail!("{}", verdict(&folder, copy_to.as_deref(), findings.damages.len()))
    }
}

fn verdict(folder: &Path, copied_to: Option<&Path>, damages: usize) -> String {
    let folder = folder.display();
    match copied_to {
        None => format!(
            "{damages} damaged place(s) in {folder}; bring the files that are named above back from a backup, or copy what \
             is whole with `semel file repair {folder} --to NEW-FOLDER`"
        ),
        Some(to) => format!(
            "{} holds what is whole of {folder}; {damages} damaged place(s) are missing in it: a key whose last word was \
             there may run again or be back in an earlier state, so check the work of that time by hand",
            to.display()
        ),
    }
}

/// For people.
fn table(copied_to: Option<&Path>, findings: &Findings) -> String {
    let line = |name: &str, value: &dyn std::fmt::Display| format!("{name:<18} {value:>16}");
    let damage = |Damage { file, offset, bytes, what }: &Damage| {
        format!("  {file} at byte {offset}, {bytes} bytes: {what}")
    };
    let mut lines = vec![
        line("segments", &findings.segments),
        line("bytes of frames", &findings.bytes),
        line("whole frames", &findings.frames),
        line("records", &findings.records),
        line("unfinished bytes", &findings.unfinished_bytes),
        line("damaged places", &findings.damages.len()),
    ];
    lines.extend(findings.damages.iter().map(damage));
    lines.push(String::new());
    if findings.unfinished_bytes > 0 {
        let note = "The unfinished bytes are a last write that was cut off. Nobody was told that it\n\
                    happened, and the next opening drops it.";
        lines.push(note.to_owned());
    }
    if findings.is_whole() {
        lines.push(
            if copied_to.is_some() { "The copy holds everything." } else { "Everything is whole." }
                .to_owned(),
        );
    }
    lines.join("\n") + "\n"
}

/// For scripts.
fn json(findings: &Findings) -> Value {
    let damage = |Damage { file, offset, bytes, what }: &Damage| json!({ "file": file, "offset": offset, "bytes": bytes, "what": what });
    json!({
        "segments": findings.segments,
        "bytes": findings.bytes,
        "frames": findings.frames,
        "records": findings.records,
        "unfinished_bytes": findings.unfinished_bytes,
        "damages": findings.damages.iter().map(damage).collect::<Vec<_>>(),
        "whole": findings.is_whole(),
    })
}
