//! One Redis process, whatever part it plays.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::ask::{ask, ask_text};
use super::settings;
use crate::place::{Place, find_program};
use crate::poll;
use crate::process::Process;

/// How often another port is tried if somebody took ours between a look and the start.
const STARTS: u32 = 5;
const CONFIG: &str = "redis.conf";

/// A `redis-server` process.
#[derive(Debug)]
pub(super) struct Node {
    process: Process,
    args: &'static [&'static str],
}

impl Node {
    /// Starts `redis-server` with durable settings and these.
    pub(super) fn start(take: fn() -> Result<Place>, own: &[(&str, &str)]) -> Result<Self> {
        Self::start_as(take, &[], |place| settings::text(place, own))
    }

    /// Starts `redis-server` with a file of settings and arguments.
    pub(super) fn start_as(
        take: fn() -> Result<Place>,
        args: &'static [&'static str],
        config: impl Fn(&Place) -> String,
    ) -> Result<Self> {
        let mut tries = 0_u32;
        loop {
            let place = take()?;
            let text = config(&place);
            // A kill is as good a stop as any: what it has is not needed any more.
            let mut node = Self { process: Process::new(place, "KILL")?, args };
            node.process.place.write(CONFIG, &text)?;
            tries = tries.saturating_add(1);
            match node.resume() {
                Ok(()) => return Ok(node),
                Err(_) if tries < STARTS && node.process.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.process.place.port
    }

    pub(super) fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_running()
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same folder and port, and waits until it has read its file and answers.
    pub(super) fn resume(&mut self) -> Result<()> {
        let program = program()?;
        let mut command = self.process.place.user.command(&program);
        command.arg(self.folder().join(CONFIG)).args(self.args);
        let port = self.port();
        // Not just anybody's answer on this port: whoever answers must be the process that was started.
        let process_id = |pid: u32| format!("process_id:{pid}");
        self.process.start(command, |pid| {
            let server = ask_text(port, &["INFO", "server"])?;
            let is_ours = server.lines().any(|line| line == process_id(pid));
            Ok(is_ours && !ask_text(port, &["INFO", "persistence"])?.contains("loading:1"))
        })
    }

    pub(super) fn ask(&self, words: &[&str]) -> Result<Vec<String>> {
        ask(self.port(), words)
    }

    /// Waits until `INFO replication` has this line.
    pub(super) fn until_replication(&self, line: &str) -> Result<()> {
        poll::until(&format!("`{line}` on port {}", self.port()), || {
            let info = ask_text(self.port(), &["INFO", "replication"])?;
            Ok(info.lines().any(|found| found == line).then_some(()))
        })
    }
}

/// Where `redis-server` is.
pub(super) fn program() -> Result<PathBuf> {
    find_program("redis-server").context("redis-server is not installed: apt-get install redis-server")
}
