//! The proxy as people run it: the real binary, a child of this process, with a config file of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use semel_serving::Program;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Longer than a start takes, also on a busy machine.
const START: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A running proxy. Dropped, it is killed.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    program: Program,
    _folder: TempDir,
}

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
        let mut program = Program::start(&mut command)?;
        let address = listening(&mut program).await?;
        Ok(Self { address, program, _folder: folder })
    }

    /// The last lines that it said.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.program.lines()
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(self) -> Result<()> {
        self.program.kill()
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.program.is_running()
    }

    /// How much memory it has now, and how much it had at most, in bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.program.memory()
    }
}

async fn listening(program: &mut Program) -> Result<SocketAddr> {
    let started_at = Instant::now();
    loop {
        if let Some(address) = program.address()? {
            return Ok(address);
        }
        ensure!(started_at.elapsed() < START, "the proxy does not listen:\n{}", program.lines().join("\n"));
        sleep(BETWEEN_LOOKS).await;
    }
}
