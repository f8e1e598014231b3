//! The real binary, a child of this process: what it says is kept, and dropped it is killed.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};

/// How much of what it says is kept.
const LINES_MAX: usize = 200;

type Said = Arc<Mutex<VecDeque<String>>>;

/// A running program. Dropped, it is killed.
pub struct Program {
    child: Child,
    said: Said,
}

impl Program {
    /// Starts it, and listens to all that it says.
    pub fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = command.get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", name.display()))?;
        let said = Said::default();
        gather(child.stdout.take(), &said);
        gather(child.stderr.take(), &said);
        Ok(Self { child, said })
    }

    /// Where it said that it listens; `None` before it did. An error if it ended instead.
    pub fn address(&mut self) -> Result<Option<SocketAddr>> {
        if let Some(address) = self.lines().iter().find_map(|line| address_in(line)) {
            return Ok(Some(address));
        }
        match self.child.try_wait()? {
            Some(status) => bail!("it ended at once ({status}):\n{}", self.lines().join("\n")),
            None => Ok(None),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The last lines that it said.
    pub fn lines(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
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
        // It may be dead already.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Keeps the last lines of a pipe, and never lets it fill up.
fn gather(pipe: Option<impl Read + Send + 'static>, said: &Said) {
    let (Some(pipe), said) = (pipe, Arc::clone(said)) else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() == LINES_MAX {
                said.pop_front();
            }
            said.push_back(line);
        }
    });
}

/// The address in the line that says where it listens.
fn address_in(line: &str) -> Option<SocketAddr> {
    let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | ',' | ';' | '=' | '(' | ')'));
    let bare = |word: &str| {
        let word = word.trim_start_matches("http://").trim_end_matches(['.', ':']);
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
