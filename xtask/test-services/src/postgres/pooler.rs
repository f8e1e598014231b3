//! `PgBouncer` before a PostgreSQL server.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::server::{Postgres, url_at};
use crate::place::{Place, find_program};
use crate::process::Process;

/// How often another port is tried if another process took ours before the start.
const STARTS: u32 = 5;
const CONFIG: &str = "pgbouncer.ini";
const USERS: &str = "users.txt";
/// What it says when it takes connections.
const READY: &str = "process up";
/// How many connections to the server it keeps: few, so that sessions are shared.
const POOL_SIZE: u32 = 4;

/// When a client's connection to the server goes back to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client disconnects.
    Session,
    /// After each transaction: the next one may run in another session.
    Transaction,
}

/// A `PgBouncer` with a folder and a port of its own. Dropped, it is stopped, and its folder gone.
#[derive(Debug)]
pub struct PgBouncer {
    process: Process,
}

impl PgBouncer {
    /// Starts one before this server. It keeps 4 connections to it, trusts every client, and has its own defaults otherwise.
    pub fn start(server: &Postgres, mode: PoolMode) -> Result<Self> {
        Self::start_with(server, mode, &[])
    }

    /// The same with settings of your own, as the section `[pgbouncer]` of its file takes them.
    pub fn start_with(server: &Postgres, mode: PoolMode, settings: &[(&str, &str)]) -> Result<Self> {
        let mut tries = 0_u32;
        loop {
            let mut pooler = Self::prepare(server.port(), mode, settings)?;
            tries = tries.saturating_add(1);
            match pooler.resume() {
                Ok(()) => return Ok(pooler),
                Err(_) if tries < STARTS && pooler.process.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn prepare(server: u16, mode: PoolMode, own: &[(&str, &str)]) -> Result<Self> {
        let place = Place::take()?;
        place.write(USERS, "\"semel\" \"\"\n")?;
        place.write(CONFIG, &text(&place, server, mode, own))?;
        // SIGTERM is its immediate shutdown.
        Ok(Self { process: Process::new(place, "TERM")? })
    }

    /// Where clients connect: `postgres://semel@127.0.0.1:PORT/semel`.
    pub fn url(&self) -> String {
        url_at(self.port())
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.place.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    /// Stops it as its service would: clients are disconnected.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::TERM)
    }

    /// Kills it.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same folder and port, and waits until it takes connections.
    pub fn resume(&mut self) -> Result<()> {
        let place = self.process.place.clone();
        let mut command = place.user.command(&program()?);
        command.arg(place.folder.join(CONFIG));
        let log_bytes = place.log_bytes();
        self.process.start(command, |_| {
            Ok(place.has_said(READY, log_bytes)
                && TcpStream::connect((Ipv4Addr::LOCALHOST, place.port)).is_ok())
        })
    }
}

fn program() -> Result<PathBuf> {
    find_program("pgbouncer").context("pgbouncer is not installed: apt-get install pgbouncer")
}

fn text(place: &Place, server: u16, mode: PoolMode, own: &[(&str, &str)]) -> String {
    let users = place.folder.join(USERS);
    let (port, folder, users, pool) = (
        place.port.to_string(),
        place.folder.to_string_lossy(),
        users.to_string_lossy(),
        POOL_SIZE.to_string(),
    );
    let mode = match mode {
        PoolMode::Session => "session",
        PoolMode::Transaction => "transaction",
    };
    let settings = [
        ("listen_addr", "127.0.0.1"),
        ("listen_port", port.as_str()),
        ("unix_socket_dir", folder.as_ref()),
        ("auth_type", "trust"),
        ("auth_file", users.as_ref()),
        ("admin_users", "semel"),
        ("pool_mode", mode),
        ("default_pool_size", pool.as_str()),
        ("max_client_conn", "500"),
        // A server that was down is tried again soon.
        ("server_login_retry", "0.1"),
    ];
    let line = |(name, value): &(&str, &str)| format!("{name} = {value}\n");
    let lines = settings.iter().chain(own).map(line).collect::<Vec<_>>().concat();
    format!("[databases]\nsemel = host=127.0.0.1 port={server} dbname=semel\n\n[pgbouncer]\n{lines}")
}
