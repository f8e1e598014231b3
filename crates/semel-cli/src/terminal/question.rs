//! Asks before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};

/// Whether a person has to agree first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Ask.
    Ask,
    /// `--yes`: it was given.
    Given,
}

/// Says what is about to happen, and returns if it may.
pub(crate) fn ask(consent: Consent, what: &str, question: &str) -> Result<()> {
    if consent == Consent::Given {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!(
            "nothing was changed: there is no terminal to ask on. Add --yes if this is what you want:\n\n{what}"
        );
    }
    let mut err = io::stderr().lock();
    write!(err, "{what}\n\n{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    bail!("nothing was changed");
}
