//! Runs other programs, and says on stderr what is being done; in colour only on a terminal.

use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// How the variables start in which cargo tells a program of its own package.
const OURS: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

/// Where the workspace is. Cargo says so when it runs us; a binary that is run by hand stays in the tree
/// it was built from.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let is_root = |folder: &&Path| folder.join("Cargo.lock").is_file();
    Path::new(&manifest).ancestors().find(is_root).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A program that cargo has built, by its name in a folder of the target folder such as `release`.
pub fn built(folder: &str, name: &str) -> Result<PathBuf> {
    // We were built by the same cargo, into the same target folder.
    let us = env::current_exe().context("cannot tell where this program is")?;
    let target = us.parent().and_then(Path::parent).context("this program is in no target folder")?;
    let program = target.join(folder).join(name);
    ensure!(program.is_file(), "cargo built no {}", program.display());
    Ok(program)
}

/// A command line to be run at the root of the workspace.
#[derive(Debug)]
pub struct Run(Command);

/// A program with these arguments.
pub fn program<A: AsRef<OsStr>>(name: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Run {
    let mut command = Command::new(name);
    command.args(args).current_dir(root());
    Run(command)
}

/// The cargo that runs us, with these arguments.
pub fn cargo<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
    let mut run = program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args);
    // What cargo told us of our own package: some build scripts look at it, and would build all over again.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| OURS.iter().any(|ours| name.starts_with(ours))) {
            run.0.env_remove(name);
        }
    }
    run
}

impl Run {
    /// The same with a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Shows the command line, runs it with our output, and fails if it does.
    pub fn show(self) -> Result<()> {
        say(GREEN, "run", &self.line());
        self.pass()
    }

    /// Runs it with our input and output, and fails if it does.
    pub fn pass(mut self) -> Result<()> {
        let status = self.0.status().with_context(|| format!("cannot start `{}`", self.line()))?;
        ensure!(status.success(), "`{}` failed ({status})", self.line());
        Ok(())
    }

    /// What it writes to standard output; fails if it does.
    pub fn output(mut self) -> Result<String> {
        let output = self.0.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot start `{}`", self.line()))?;
        ensure!(output.status.success(), "`{}` failed ({})", self.line(), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The command itself, for whoever wants its pipes.
    pub fn into_command(self) -> Command {
        self.0
    }

    /// Whether it can be started and succeeds; shows nothing.
    pub fn succeeds(mut self) -> bool {
        let quiet = self.0.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    /// Runs it with our output and no word of our own: it is a part of us, and says for itself what it does. Its input
    /// ends when we do, however we do.
    pub fn in_our_name(mut self) -> Result<()> {
        let line = self.line();
        let mut child =
            self.0.stdin(Stdio::piped()).spawn().with_context(|| format!("cannot start `{line}`"))?;
        // Waiting closes the input of whoever is waited for, unless somebody else has it.
        let input = child.stdin.take();
        let status = child.wait().with_context(|| format!("cannot wait for `{line}`"))?;
        drop(input);
        ensure!(status.success(), "it did not pass ({status})");
        Ok(())
    }

    /// Runs it without a word, and fails with what it said on stderr.
    pub fn quietly(mut self) -> Result<()> {
        let line = self.line();
        let output =
            self.0.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{line}` failed ({}): {}", output.status, said.trim());
        Ok(())
    }

    fn line(&self) -> String {
        let name = Path::new(self.0.get_program()).file_name().unwrap_or_default();
        let words = std::iter::once(name).chain(self.0.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }
}

/// Says which part of a command starts now.
pub fn started(what: &str) {
    say(GREEN, "==>", what);
}

/// Says what is left out, and why.
pub fn skipped(what: &str, because: &str) {
    say(YELLOW, "skipped", &format!("{what}, because {because}"));
}

/// Says that a command reached its end.
pub fn passed(what: &str) {
    say(GREEN, "ok", what);
}

/// Says why a command did not reach its end.
pub fn failed(why: &str) {
    say(RED, "failed", why);
}

fn say(colour: &str, word: &str, rest: &str) {
    if std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none() {
        eprintln!("\u{1b}[1;{colour}m{word}\u{1b}[0m {rest}");
    } else {
        eprintln!("{word} {rest}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_an_error_that_names_it() {
        let error = program("false", [] as [&str; 0]).show().unwrap_err();
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
        assert!(program("true", [] as [&str; 0]).show().is_ok());
    }

    #[test]
    fn a_program_that_is_not_there_does_not_succeed() {
        assert!(!program("no-such-program-as-this", [] as [&str; 0]).succeeds());
    }
}
