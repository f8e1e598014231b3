//! The proxy as people run it: the real binary, a child of this process, with a config file of its own.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Longer than a start takes, also on a busy machine.
const START: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// How much of what it says is kept.
const LINES_MAX: usize = 200;

/// A running proxy. Dropped, it is killed.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    child: Child,
    said: Said,
    _folder: TempDir,
}

type Said = Arc<Mutex<VecDeque<String>>>;

impl Proxy {
    /// Starts one before a service; `rules` is what its config file says beside the addresses.
    pub(crate) async fn start(binary: &Path, upstream: SocketAddr, store: &str, rules: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("semel.toml");
        let top = format!(
            "listen = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\nadmin = \"off\"\naccess_log = \"off\"\n"
        );
        fs::write(&file, format!("{top}{rules}"))?;
        let mut command = Command::new(binary);
        command.args(["proxy", "--store", store, "--config"]).arg(&file).env_remove("SEMEL_STORE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let said = Said::default();
        gather(child.stdout.take(), &said);
        gather(child.stderr.take(), &said);
        // Made before it listens: whatever goes wrong, it is killed when dropped.
        let mut proxy = Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), child, said, _folder: folder };
        proxy.address = proxy.listening().await?;
        Ok(proxy)
    }

    async fn listening(&mut self) -> Result<SocketAddr> {
        let started_at = Instant::now();
        loop {
            if let Some(address) = self.lines().iter().find_map(|line| address_in(line)) {
                return Ok(address);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the proxy ended at once ({status}):\n{}", self.lines().join("\n"));
            }
            ensure!(started_at.elapsed() < START, "the proxy does not listen:\n{}", self.lines().join("\n"));
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// The last lines that it said.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// How much memory it has now, and how much it had at most, in bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let of = |name: &str| -> Option<u64> {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1_024)
        };
        Ok((of("VmRSS:").context("no VmRSS")?, of("VmHWM:").context("no VmHWM")?))
    }
}

impl Drop for Proxy {
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
    if !line.to_ascii_lowercase().contains("listen") {
        return None;
    }
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | ',' | ';' | '='));
    words
        .map(|word| word.trim_start_matches("http://").trim_end_matches(['/', '.']))
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_however_it_is_said() {
        for line in [
            "listening on http://127.0.0.1:80",
            "semel: listening on 127.0.0.1:80, before http://127.0.0.1:9",
        ] {
            assert_eq!(address_in(line), Some(SocketAddr::from(([127, 0, 0, 1], 80))), "{line}");
        }
        assert_eq!(address_in("store 127.0.0.1:80"), None);
    }
}
