//! Standard output, also when nobody reads on; and questions, before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use serde::Serialize;

use super::style;

/// Prints a line.
pub(crate) fn line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(())
}

/// Prints text that ends its lines itself.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a line that needs no attention.
pub(crate) fn quiet(text: &str) -> Result<()> {
    line(&style::quiet().apply_to(text).to_string())
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string(value)?)
}

/// How wide a line may be; `None` if no person is looking.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    // A pseudo terminal that nobody has sized says 0.
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns)).filter(|width| *width > 0)
}

/// Whether the error only says that whoever read has seen enough: `semel keys list | head`.
pub(crate) fn nobody_reads_on(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|error| {
        error.downcast_ref::<io::Error>().is_some_and(is_pipe)
            || error
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}

/// Whether a person has to agree first.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Says what is about to happen, and returns if it may.
    pub(crate) fn ask(self, what: &str, question: &str) -> Result<()> {
        if self.yes {
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
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("while listing");
        assert!(nobody_reads_on(&gone.expect_err("it failed")));
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(!nobody_reads_on(&full));
    }
}
