//! A standby: a second server that follows a first one, and can take its place.

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::server::{Postgres, run};
use crate::link::Link;
use crate::poll;
use crate::process::Process;

/// Whether the primary waits for its standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standby {
    /// The primary acknowledges nothing that the standby does not have on its disk.
    Synchronous,
    /// The primary acknowledges first, and the standby gets it afterwards.
    Asynchronous,
}

impl Postgres {
    /// Makes a standby of this server, and waits until it follows.
    pub fn standby(&self, kind: Standby) -> Result<Self> {
        self.standby_at(self.port(), kind)
    }

    /// The same, with a link to this server between the two: cut or frozen, the standby gets nothing.
    pub fn standby_over(&self, link: &Link, kind: Standby) -> Result<Self> {
        self.standby_at(link.port(), kind)
    }

    fn standby_at(&self, primary: u16, kind: Standby) -> Result<Self> {
        let (place, programs, take) = ((self.take)()?, self.programs.clone(), self.take);
        let mut settings = self.settings.clone();
        settings.live_in(&place);
        let name = format!("standby_{}", place.port);
        let primary = format!("host=127.0.0.1 port={primary} user=semel application_name={name}");
        settings.set("primary_conninfo", &primary);
        // Promoted, it waits for no standby.
        settings.unset("synchronous_standby_names");
        let mut standby = Self { process: Process::new(place, "QUIT")?, programs, settings, take };
        let mut backup = standby.command("pg_basebackup");
        backup.args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest"]);
        backup.args(["--dbname", &primary, "--pgdata"]).arg(standby.data());
        run(&mut backup)?;
        standby.write_settings()?;
        standby.process.place.write("data/standby.signal", "")?;
        standby.resume()?;
        if kind == Standby::Synchronous {
            self.wait_for(&name)?;
        }
        let state =
            format!("SELECT state, sync_state FROM pg_stat_replication WHERE application_name = '{name}'");
        let expected = if kind == Standby::Synchronous { "streaming|sync" } else { "streaming|async" };
        poll::until("a standby to follow", || Ok((self.ask(&state)? == expected).then_some(())))?;
        Ok(standby)
    }

    /// From now on nothing is acknowledged that the standby of this name does not have.
    fn wait_for(&self, standby: &str) -> Result<()> {
        let mut settings = self.settings.clone();
        settings.set("synchronous_standby_names", standby);
        self.process.place.write("data/postgresql.conf", &settings.to_text())?;
        self.process.signal(Signal::HUP)
    }

    /// Starts a stopped primary again as one that waits for no standby.
    pub fn resume_alone(&mut self) -> Result<()> {
        self.write_settings()?;
        self.resume()
    }

    /// Makes a standby the primary: it follows no other server any more. Returns when it takes writes.
    pub fn promote(&mut self) -> Result<()> {
        let promoted = self.ask("SELECT pg_promote(true, 60)")?;
        ensure!(promoted == "t", "the standby on port {} could not be promoted", self.port());
        self.settings.unset("primary_conninfo");
        self.write_settings()
    }
}
