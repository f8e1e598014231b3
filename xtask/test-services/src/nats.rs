//! One NATS server with JetStream.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::place::{Place, find_program};
use crate::process::Process;

/// How often another port is tried if another process took ours before the start.
const STARTS: u32 = 5;
/// What it says when it takes connections.
const READY: &str = "Server is ready";

/// A NATS server with a folder and a port of its own, whose JetStream keeps its files there. Dropped, it is stopped, and
/// its folder gone.
#[derive(Debug)]
pub struct Nats {
    process: Process,
}

impl Nats {
    /// Starts a server that trusts every client, and listens on 127.0.0.1 alone.
    pub fn start() -> Result<Self> {
        for _ in 1..STARTS {
            let mut server = Self::prepare()?;
            match server.resume() {
                Ok(()) => return Ok(server),
                Err(_) if server.process.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
        let mut server = Self::prepare()?;
        server.resume()?;
        Ok(server)
    }

    fn prepare() -> Result<Self> {
        // A kill is as good a stop as any: what it has is not needed any more.
        Ok(Self { process: Process::new(Place::take()?, "KILL")? })
    }

    /// Where it is: `nats://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.place.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    /// Stops it as its service would: what it has in memory is written.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::TERM)
    }

    /// Kills it.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same folder and port, and waits until it has read its files and takes connections.
    pub fn resume(&mut self) -> Result<()> {
        let place = self.process.place.clone();
        let mut command = place.user.command(&program()?);
        command.args(["--addr", "127.0.0.1", "--port"]).arg(place.port.to_string());
        command.args(["--jetstream", "--store_dir"]).arg(place.folder.join("store"));
        let log_bytes = place.log_bytes();
        self.process.start(command, |_| Ok(place.has_said(READY, log_bytes)))
    }
}

fn program() -> Result<PathBuf> {
    find_program("nats-server").context("nats-server is not installed: apt-get install nats-server")
}
