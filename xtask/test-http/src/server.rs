//! `semel serve` as people run it: the real binary.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use tempfile::TempDir;

use crate::blocking::Client;
use crate::program::Program;
use crate::request::Request;
use crate::token::Token;
use crate::wait::until_blocking;

/// A running claim server. Dropped, it is killed.
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
        command.env_remove("SEMEL_STORE").env_remove("SEMEL_TOKENS");
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
        if !tokens.is_empty() {
            let text: String = tokens.iter().map(Token::toml).collect();
            command.arg("--tokens").arg(write_private(&folder, "tokens.toml", &text)?);
        }
        if !config.is_empty() {
            command.arg("--config").arg(write_private(&folder, "semel.toml", config)?);
        }
        let server = Self::run(&mut command, folder)?;
        let is_ready =
            || server.client().ask(&Request::get("/readyz")).is_ok_and(|answer| answer.status == 200);
        until_blocking("the server to get ready", || is_ready().then_some(()));
        Ok(server)
    }

    /// Starts this command line, and waits until it listens.
    pub fn from_command(command: &mut Command) -> Result<Self> {
        Self::run(command, tempfile::tempdir()?)
    }

    fn run(command: &mut Command, folder: TempDir) -> Result<Self> {
        let mut program = Program::start(command)?;
        let address = program.listening()?;
        Ok(Self { address, program, _folder: folder })
    }

    /// A caller of it.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// The address of a page, for a browser.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Deref for Server {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}

/// A file that nobody else may read.
fn write_private(folder: &TempDir, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.path().join(name);
    File::options().write(true).create_new(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}
