//! The real binary as a claim server.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tempfile::TempDir;

use super::ask::Ask;
use super::client::Client;
use super::token::Token;
use crate::program::Program;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Longer than a start takes, also on a busy machine.
const LOOKS_MAX: u32 = 6_000;

/// A running `semel serve`. Dropped, it is killed.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    program: Program,
    _folder: TempDir,
}

impl Server {
    /// Starts one on a store, for holders of these tokens; for everybody on this machine without.
    pub fn start(binary: &Path, store: &str, tokens: &[Token]) -> Result<Self> {
        Self::start_with(binary, store, tokens, "")
    }

    /// With a config file beside.
    pub fn start_with(binary: &Path, store: &str, tokens: &[Token], config: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
        command.env_remove("SEMEL_STORE").env_remove("SEMEL_TOKENS");
        if !tokens.is_empty() {
            let text: String = tokens.iter().map(Token::toml).collect();
            command.arg("--tokens").arg(written(&folder, "tokens.toml", &text)?);
        }
        if !config.is_empty() {
            command.arg("--config").arg(written(&folder, "semel.toml", config)?);
        }
        let mut program = Program::start(command.current_dir(folder.path()))?;
        let address = listening(&mut program)?;
        let server = Self { address, program, _folder: folder };
        server.ready()?;
        Ok(server)
    }

    fn ready(&self) -> Result<()> {
        for _ in 0..LOOKS_MAX {
            if self.client().ask(&Ask::get("/readyz")).is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            sleep(BETWEEN_LOOKS);
        }
        bail!("the server does not get ready:\n{}", self.lines().join("\n"))
    }

    /// Somebody who asks it.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// The address of a page, for a browser.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.program.is_running()
    }

    /// The last lines that it said.
    pub fn lines(&self) -> Vec<String> {
        self.program.lines()
    }

    /// How much memory it has now, and how much it had at most, in bytes.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.program.memory()
    }
}

fn listening(program: &mut Program) -> Result<SocketAddr> {
    for _ in 0..LOOKS_MAX {
        if let Some(address) = program.address()? {
            return Ok(address);
        }
        sleep(BETWEEN_LOOKS);
    }
    bail!("the server does not listen:\n{}", program.lines().join("\n"))
}

/// A file that nobody else may read.
fn written(folder: &TempDir, name: &str, text: &str) -> Result<std::path::PathBuf> {
    let path = folder.path().join(name);
    let mut file: File = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}
