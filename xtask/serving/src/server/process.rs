//! The real binary, a child of this process.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::ask::Ask;
use super::client::Client;
use super::token::Token;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Longer than a start takes, also on a busy machine.
const LOOKS_MAX: u32 = 6_000;
/// How much of what it says is kept.
const LINES_MAX: usize = 200;

/// A running `semel serve`. Dropped, it is killed.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    said: Said,
    _folder: TempDir,
}

type Said = Arc<Mutex<VecDeque<String>>>;

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
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(folder.path());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let said = Said::default();
        gather(child.stdout.take(), &said);
        gather(child.stderr.take(), &said);
        // Made before it listens: whatever goes wrong, it is killed when dropped.
        let mut server =
            Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), child, said, _folder: folder };
        server.address = server.listening()?;
        server.ready()?;
        Ok(server)
    }

    fn listening(&mut self) -> Result<SocketAddr> {
        for _ in 0..LOOKS_MAX {
            if let Some(address) = self.lines().iter().find_map(|line| address_in(line)) {
                return Ok(address);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended at once ({status}):\n{}", self.lines().join("\n"));
            }
            sleep(BETWEEN_LOOKS);
        }
        bail!("the server does not listen:\n{}", self.lines().join("\n"))
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
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
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

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A file that nobody else may read.
fn written(folder: &TempDir, name: &str, text: &str) -> Result<std::path::PathBuf> {
    let path = folder.path().join(name);
    let mut file: File = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
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
