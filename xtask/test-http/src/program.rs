//! A program, a child of this process: what it writes is kept, and dropped it is killed.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::until_blocking;

/// How many lines are kept, and how many of them an error shows.
const LINES_MAX: usize = 50_000;
const LINES_SHOWN: usize = 200;

/// Where a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Out,
    Err,
}

/// The last lines, in the order in which they came.
type Lines = Arc<Mutex<VecDeque<(Output, String)>>>;

/// A running program. Dropped, it is killed.
pub struct Program {
    child: Child,
    lines: Lines,
    /// How many lines of its standard error [`next_line`](Self::next_line) has handed out.
    handed_out: usize,
}

impl Program {
    /// Starts it, and keeps what it writes. Its input is as the command says.
    pub fn start(command: &mut Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = command.get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", name.display()))?;
        let lines = Lines::default();
        gather(child.stdout.take(), Output::Out, &lines);
        gather(child.stderr.take(), Output::Err, &lines);
        Ok(Self { child, lines, handed_out: 0 })
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(Output, String)>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it says that it listens; `None` before it does. An error if it ended instead.
    pub fn address(&mut self) -> Result<Option<SocketAddr>> {
        if let Some(address) = self.kept().iter().find_map(|(_, line)| address_in(line)) {
            return Ok(Some(address));
        }
        match self.child.try_wait()? {
            Some(status) => bail!("it ended at once ({status}):\n{}", self.tail()),
            None => Ok(None),
        }
    }

    /// Waits until it says where it listens.
    pub fn listening(&mut self) -> Result<SocketAddr> {
        until_blocking("the program to listen", || self.address().transpose())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("is ours");
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        until_blocking("the program to end", || self.child.try_wait().expect("is ours"))
    }

    /// Every line so far, of both outputs.
    pub fn lines(&self) -> Vec<String> {
        self.kept().iter().map(|(_, line)| line.clone()).collect()
    }

    /// The last lines, for an error.
    pub fn tail(&self) -> String {
        let lines = self.lines();
        lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default().join("\n")
    }

    fn text(&self, wanted: Output) -> String {
        let kept = self.kept();
        kept.iter()
            .filter(|(output, _)| *output == wanted)
            .flat_map(|(_, line)| [line.as_str(), "\n"])
            .collect()
    }

    /// What it has written to standard output so far.
    pub fn out(&self) -> String {
        self.text(Output::Out)
    }

    /// What it has written to standard error so far.
    pub fn err(&self) -> String {
        self.text(Output::Err)
    }

    /// The next line of its standard error; waits for it.
    pub fn next_line(&mut self) -> String {
        let line = until_blocking("a line", || {
            let kept = self.kept();
            kept.iter()
                .filter(|(output, _)| *output == Output::Err)
                .nth(self.handed_out)
                .map(|(_, line)| line.clone())
        });
        self.handed_out += 1;
        line
    }

    /// Waits until something it wrote has this in it.
    pub fn until_written(&self, part: &str) {
        until_blocking(part, || self.kept().iter().any(|(_, line)| line.contains(part)).then_some(()));
    }

    /// How much memory it has now, and how much it had at most, in bytes.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let of = |name: &str| -> Option<u64> {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1_024)
        };
        Ok((of("VmRSS:").context("no VmRSS")?, of("VmHWM:").context("no VmHWM")?))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may be dead already, or stopped: a kill ends it all the same.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Keeps the last lines of a pipe, and never lets it fill up.
fn gather(pipe: Option<impl Read + Send + 'static>, output: Output, lines: &Lines) {
    let (Some(pipe), lines) = (pipe, Arc::clone(lines)) else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back((output, line));
        }
    });
}

/// The address in the line that says where it listens.
fn address_in(line: &str) -> Option<SocketAddr> {
    let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | ',' | ';' | '=' | '(' | ')'));
    let bare = |word: &str| {
        let word =
            word.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches(['.', ':']);
        word.split('/').next().unwrap_or_default().parse::<SocketAddr>().ok()
    };
    line.to_ascii_lowercase().contains("listen").then(|| words.find_map(bare)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_however_it_is_said() {
        for line in [
            "listening on http://127.0.0.1:80",
            "semel: listening on 127.0.0.1:80, before http://127.0.0.1:9",
            "semel serve: listening on http://127.0.0.1:80/ (memory:)",
        ] {
            assert_eq!(address_in(line), Some(SocketAddr::from(([127, 0, 0, 1], 80))), "{line}");
        }
        assert_eq!(address_in("store 127.0.0.1:80"), None);
    }
}
