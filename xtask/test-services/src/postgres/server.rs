//! One PostgreSQL server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use super::programs;
use super::settings::Settings;
use crate::link::Link;
use crate::place::Place;
use crate::process::Process;

/// How often another port is tried if another process took ours before the start.
const STARTS: u32 = 5;
/// The user and the database.
const NAME: &str = "semel";

/// A PostgreSQL server with a folder and a port of its own. Dropped, it is stopped, and its folder gone.
#[derive(Debug)]
pub struct Postgres {
    pub(super) process: Process,
    pub(super) programs: PathBuf,
    pub(super) settings: Settings,
    /// Where it takes its place, and its standbys theirs.
    pub(super) take: fn() -> Result<Place>,
}

impl Postgres {
    /// Starts a server that loses nothing that it acknowledged: `fsync`, `full_page_writes` and `synchronous_commit`
    /// are on. It trusts every client, and listens on 127.0.0.1 alone.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same with settings of your own, as `postgresql.conf` takes them.
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_at(Place::take, settings)
    }

    /// The same with its folder in memory, where a sync costs nothing. For tests that kill processes and no machines: the
    /// system keeps what a killed process wrote, synced or not.
    pub fn start_in_memory(settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_at(Place::take_in_memory, settings)
    }

    fn start_at(take: fn() -> Result<Place>, settings: &[(&str, &str)]) -> Result<Self> {
        let programs = programs::folder()?;
        for _ in 1..STARTS {
            let mut server = Self::prepare(take, programs.clone(), settings)?;
            match server.resume() {
                Ok(()) => return server.with_database(),
                Err(_) if server.process.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
        let mut server = Self::prepare(take, programs, settings)?;
        server.resume()?;
        server.with_database()
    }

    fn prepare(take: fn() -> Result<Place>, programs: PathBuf, own: &[(&str, &str)]) -> Result<Self> {
        let place = take()?;
        let mut settings = Settings::durable(&place);
        for (name, value) in own {
            settings.set(name, value);
        }
        // SIGQUIT is PostgreSQL's immediate stop.
        let server = Self { process: Process::new(place, "QUIT")?, programs, settings, take };
        let mut initdb = server.command("initdb");
        // The folder is new: if the machine dies while it is filled, it is not needed.
        initdb.args(["--auth=trust", "--username=semel", "--no-locale", "--encoding=UTF8", "--no-sync"]);
        run(initdb.arg("--pgdata").arg(server.data()))?;
        server.write_settings()?;
        Ok(server)
    }

    fn with_database(self) -> Result<Self> {
        self.ask_in("postgres", "CREATE DATABASE semel")?;
        Ok(self)
    }

    /// Where it is: `postgres://semel@127.0.0.1:PORT/semel`.
    pub fn url(&self) -> String {
        url_at(self.port())
    }

    /// Where it is for clients that come over this link, which must lead to it.
    pub fn url_over(&self, link: &Link) -> String {
        url_at(link.port())
    }

    /// The URL of whichever server takes writes behind these two ports: a primary's and its standby's, or links to them.
    pub fn url_of_either(first: u16, second: u16) -> String {
        format!("postgres://{NAME}@127.0.0.1:{first},127.0.0.1:{second}/{NAME}")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.place.port
    }

    /// Its folder: the data in `data`, what it says in `log`, and its socket.
    pub fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    /// Has the server answer a statement, by `psql`; what comes back is unaligned text.
    pub fn ask(&self, statement: &str) -> Result<String> {
        self.ask_in(NAME, statement)
    }

    fn ask_in(&self, database: &str, statement: &str) -> Result<String> {
        let mut psql = self.command("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1"]);
        psql.args(["--host=127.0.0.1", "--username=semel"]).arg(format!("--port={}", self.port()));
        Ok(run(psql.arg(format!("--dbname={database}")).args(["--command", statement]))?.trim().to_owned())
    }

    /// Stops it as `pg_ctl stop -m immediate` does: no checkpoint, recovery at the next start.
    pub fn stop_immediately(&mut self) -> Result<()> {
        self.process.stop(Signal::QUIT)
    }

    /// Stops it as `pg_ctl stop -m fast` does: connections are ended, a checkpoint is written.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::INT)
    }

    /// Kills the postmaster and all its children, as a machine's out-of-memory killer would on a bad day.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same folder and port, and waits until it takes connections.
    pub fn resume(&mut self) -> Result<()> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        let pid_file = self.data().join("postmaster.pid");
        self.process.start(command, |pid| Ok(is_ready(&pid_file, pid)))
    }

    /// Writes the settings where the server reads them when it starts or reloads.
    pub(super) fn write_settings(&self) -> Result<()> {
        self.process.place.write("data/postgresql.conf", &self.settings.to_text()).map(drop)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.process.place.folder.join("data")
    }

    /// One of PostgreSQL's programs, run as the user of the server.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.process.place.user.command(&self.programs.join(program));
        command.current_dir(&self.process.place.folder);
        command
    }
}

/// The URL of the database on this port of 127.0.0.1: a server's, a link's or a pooler's.
pub(crate) fn url_at(port: u16) -> String {
    format!("postgres://{NAME}@127.0.0.1:{port}/{NAME}")
}

/// The server writes into its pid file how far it is: the pid in the first line, the state in the eighth. After a kill
/// the file is still that of the server before.
fn is_ready(pid_file: &Path, pid: u32) -> bool {
    let text = fs::read_to_string(pid_file).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}

/// Runs a program to its end, and hands back what it printed.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed ({}): {}", output.status, said.trim());
    match String::from_utf8(output.stdout) {
        Ok(text) => Ok(text),
        Err(error) => bail!("{name} printed what is not text: {error}"),
    }
}
