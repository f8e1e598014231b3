//! The process that is killed, and a thread that hears what it says.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::fault::Kind;
use super::ledger::Ledger;
use super::line::{self, Line};
use xtask::run::{built, cargo};

/// A victim that says nothing for this long hangs.
const PATIENCE: Duration = Duration::from_mins(1);
const SIGKILL: i32 = 9;

/// A ledger that a thread writes while others read it.
#[derive(Clone, Default)]
pub(super) struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// One that only keeps what an opening tells.
    pub(super) fn collecting() -> Self {
        Self(Arc::new(Mutex::new(Ledger::collecting())))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the victim is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// There already, from the tests.
    Dev,
    /// Worth its build where there are many rounds.
    Release,
}

impl Profile {
    /// The one that is done sooner.
    pub(super) fn for_rounds(rounds: u64) -> Self {
        if rounds < 2_000 { Self::Dev } else { Self::Release }
    }
}

/// The program that has all victims but the consumer: this one, as it was built or for release.
pub(super) fn build(profile: Profile) -> Result<PathBuf> {
    let us = std::env::current_exe().context("cannot tell where this program is")?;
    if profile == Profile::Dev || us.parent().is_some_and(|folder| folder.ends_with("release")) {
        return Ok(us);
    }
    cargo(["build", "--release", "--package", "proofs"]).show()?;
    built("release", "proofs")
}

/// Builds the victim that consumes streams, a program of its own.
pub(super) fn build_consumer(profile: Profile) -> Result<PathBuf> {
    let name = "consumer_victim";
    let (folder, line) = match profile {
        // With the features that the tests are built with: anything else would build half the dependencies again.
        Profile::Dev => ("debug", vec!["build", "--workspace", "--all-features", "--bin", name]),
        Profile::Release => ("release", vec!["build", "--release", "--package", "proofs", "--bin", name]),
    };
    cargo(line).show()?;
    built(folder, name)
}

/// Where a victim is, as far as its lines tell.
#[derive(Debug)]
enum Milestone {
    Looked,
    Ended,
}

/// A victim that runs.
pub(super) struct Victim {
    child: Child,
    milestones: Receiver<Milestone>,
    reader: Option<JoinHandle<()>>,
    ledger: SharedLedger,
}

impl Victim {
    /// Starts a victim with these arguments on a folder or a server; what it says goes into the ledger.
    pub(super) fn start(
        program: &Path,
        args: &[&str],
        store: impl AsRef<OsStr>,
        ledger: &SharedLedger,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("victim").args(args).arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().context("a victim without a voice")?;
        let (send, milestones) = mpsc::channel();
        let heard = ledger.clone();
        let reader = std::thread::spawn(move || hear(stdout, &heard, &send));
        Ok(Self { child, milestones, reader: Some(reader), ledger: ledger.clone() })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it tell everything in its store, as soon as that can be had; for one on a server.
    pub(super) fn look(&mut self) -> Result<()> {
        let input = self.child.stdin.as_mut().context("a victim that does not listen")?;
        input.write_all(b"look\n").context("a victim that does not listen")
    }

    /// Waits until it has opened its store and told everything in it. Whether it ever will is in the answer.
    pub(super) fn wait_until_looked(&mut self) -> Result<bool> {
        match self.milestones.recv_timeout(PATIENCE) {
            Ok(Milestone::Looked) => Ok(true),
            Ok(Milestone::Ended) => Ok(false),
            Err(_) => {
                drop(self.child.kill());
                bail!("a victim hangs: it did not open its store in {} s", PATIENCE.as_secs())
            }
        }
    }

    /// Kills it, and hears out what it still said.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill().context("cannot kill a victim")?;
        let status = self.end()?;
        if status.signal() != Some(SIGKILL) && self.ledger.lock().tally.faults.is_empty() {
            self.ledger.lock().fault(Kind::Wrong, format!("a victim ended before it was killed ({status})"));
        }
        Ok(())
    }

    /// Waits for it to end by itself, and says whether it was content.
    pub(super) fn finish(mut self) -> Result<bool> {
        while self.wait_until_looked()? {}
        Ok(self.end()?.success())
    }

    fn end(&mut self) -> Result<std::process::ExitStatus> {
        let status = self.child.wait().context("cannot wait for a victim")?;
        if self.reader.take().is_some_and(|reader| reader.join().is_err()) {
            bail!("nobody heard what a victim said");
        }
        Ok(status)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // On the way out of an error, nothing may be left running.
        if self.reader.is_some() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn hear(from: impl Read, ledger: &SharedLedger, milestones: &Sender<Milestone>) {
    let mut lines = BufReader::with_capacity(1 << 16, from);
    let mut text = String::new();
    loop {
        text.clear();
        // A line without an end was cut off by the kill: nobody may rely on it.
        let is_whole = lines.read_line(&mut text).is_ok_and(|bytes| bytes > 0) && text.ends_with('\n');
        if !is_whole {
            break;
        }
        match line::parse(text.trim_end()) {
            Ok(line) => {
                let has_looked = matches!(line, Line::Looked { .. });
                ledger.lock().hear(line);
                if has_looked {
                    drop(milestones.send(Milestone::Looked));
                }
            }
            Err(error) => ledger.lock().fault(Kind::Wrong, format!("{error:#}: {}", text.trim_end())),
        }
    }
    drop(milestones.send(Milestone::Ended));
}
