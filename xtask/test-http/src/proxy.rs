//! `semel proxy` as people run it: the real binary, with a config file of its own.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use tempfile::TempDir;

use crate::program::Program;
use crate::wait::until;

/// A running proxy. Dropped, it is killed.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    program: Program,
    _folder: TempDir,
}

impl Proxy {
    /// Starts one before a service; `rules` is what its config file says beside the addresses.
    pub async fn start(binary: &Path, upstream: SocketAddr, store: &str, rules: &str) -> Result<Self> {
        let top = format!("upstream = \"http://{upstream}\"\nstore = \"{store}\"\naccess_log = \"off\"\n");
        let mut command = Command::new(binary);
        command.env_remove("SEMEL_STORE").stdin(Stdio::null());
        Self::with_config(&mut command, &format!("{top}{rules}")).await
    }

    /// Starts one with this config file, on a free port and without an admin listener.
    pub async fn with_config(binary: &mut Command, config: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("semel.toml");
        std::fs::write(&file, format!("listen = \"127.0.0.1:0\"\nadmin = \"off\"\n{config}"))?;
        let mut program = Program::start(binary.args(["proxy", "--config"]).arg(&file))?;
        let address = until("the proxy to listen", async || program.address().transpose()).await?;
        Ok(Self { address, program, _folder: folder })
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(self) -> Result<()> {
        self.program.kill()
    }
}

impl Deref for Proxy {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for Proxy {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}
