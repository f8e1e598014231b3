//! What `semel proxy` and `semel serve` share: a process that is started, reloaded and stopped by signals.

use std::io;
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow};
use semel_config::{Errors, value};
use semel_listen::raise_open_files;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::counted;

/// Files beside those of connections: the store's, the logs', the listeners'.
const OTHER_FILES: u64 = 256;

/// A process that runs until it is told to stop. What people read goes to standard error.
pub(crate) struct Service {
    /// How it is called in what it says.
    name: &'static str,
    /// What becomes of requests that are cut off.
    cut_off: &'static str,
    hangup: Signal,
    stop: StopSignals,
}

impl Service {
    /// Listens for signals from now on.
    pub(crate) fn new(name: &'static str, cut_off: &'static str) -> Result<Self> {
        let listening = || io::Result::Ok((signal(SignalKind::hangup())?, StopSignals::new()?));
        let (hangup, stop) = listening().context("signals cannot be listened for")?;
        Ok(Self { name, cut_off, hangup, stop })
    }

    /// Says so if connections may need more files than may be open: one each, and `others`.
    pub(crate) fn say_if_files_are_few(&self, connections: usize, others: usize) {
        let wanted = (connections as u64).saturating_add(others as u64).saturating_add(OTHER_FILES);
        match raise_open_files(wanted) {
            Some(limit) if limit < wanted => eprintln!(
                "{}: {limit} files may be open at once, and {connections} connections may need {wanted}: raise the \
                 limit (`ulimit -n`), or lower connections_max",
                self.name
            ),
            _ => {}
        }
    }

    /// Reloads at every SIGHUP, and drains at the first SIGTERM or SIGINT: requests that finished, and that were cut off.
    pub(crate) async fn run<S>(
        mut self,
        running: S,
        reload: impl Fn(&S) -> Result<String>,
        drain: impl AsyncFnOnce(S) -> (usize, usize),
    ) {
        let name = self.name;
        loop {
            tokio::select! {
                _ = self.hangup.recv() => match reload(&running) {
                    Ok(what) => eprintln!("{name}: reloaded{what}"),
                    Err(error) => eprintln!("{name}: not reloaded, everything stays as it was: {error:#}"),
                },
                () = self.stop.next() => break,
            }
        }
        eprintln!("{name}: stopping; what runs may finish, nothing new is taken");
        tokio::select! {
            (finished, cut_off) = drain(running) => {
                let finished = counted(finished as u64, "request");
                match cut_off {
                    0 => eprintln!("{name}: stopped; {finished} finished, none was cut off"),
                    _ => eprintln!(
                        "{name}: stopped; {finished} finished, {} cut off: {}",
                        counted(cut_off as u64, "request"),
                        self.cut_off
                    ),
                }
            }
            // Whoever says so twice means it.
            () = self.stop.next() => eprintln!("{name}: stopped at once"),
        }
    }
}

/// SIGTERM and SIGINT.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// All that is wrong with a configuration, a line each.
pub(crate) fn cannot_be(errors: &Errors) -> anyhow::Error {
    let count = counted(errors.faults().len() as u64, "setting");
    anyhow!("{count} cannot be:\n{errors}")
}

/// Reads an address to listen on as a configuration file does.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    value::address(text).map_err(|error| format!("this is {error}"))
}
