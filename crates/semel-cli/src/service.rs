//! What `semel proxy` and `semel serve` share: a process that is started, reloaded and stopped by signals.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::builder::TypedValueParser;
use semel::clock::{Clock as _, SystemClock};
use semel_config::{Errors, span, value};
use semel_listen::{Drained, raise_open_files};
use semel_ops::access_log::AccessLog;
use semel_ops::format::moment::rfc3339;
use semel_proxy::Proxy;
use semel_server::serve::Server;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::words;
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
            Some(limit) if limit < wanted => say(
                self.name,
                &format!(
                    "{limit} files may be open at once, and {connections} connections may need {wanted}: raise the \
                     limit (`ulimit -n`), or lower connections_max"
                ),
            ),
            _ => {}
        }
    }

    /// Reloads at every SIGHUP, and stops at the first SIGTERM or SIGINT. A second one ends it at once.
    pub(crate) async fn run<S: Stoppable>(mut self, running: S, reload: impl Fn(&S) -> Result<String>) {
        let name = self.name;
        let kind = loop {
            tokio::select! {
                _ = self.hangup.recv() => match reload(&running) {
                    Ok(what) => say(name, &format!("reloaded{what}")),
                    Err(error) => say(name, &format!("not reloaded, everything stays as it was: {error:#}")),
                },
                kind = self.stop.next() => break kind,
            }
        };
        tokio::select! {
            drained = Box::pin(stopped(name, running, kind)) => {
                let finished = counted(drained.finished as u64, "request");
                let cut_off = match drained.cut_off {
                    0 => "none was cut off".to_owned(),
                    count => format!("{} cut off: {}", counted(count as u64, "request"), self.cut_off),
                };
                say(name, &format!("stopped; {finished} finished, {cut_off}"));
            }
            // The second signal is meant.
            _ = self.stop.next() => say(name, "stopped at once"),
        }
    }
}

/// Stops in order. Only a process that may be behind a load balancer serves on for a while.
async fn stopped(name: &str, running: impl Stoppable, kind: StopKind) -> Drained {
    let grace = running.grace();
    if kind == StopKind::Terminate && !grace.is_zero() {
        let grace = span::written(grace);
        say(name, &format!("stopping; /readyz fails from now on, new requests are taken for {grace} more"));
        running.leave().await;
    }
    say(name, "stopping; requests in flight may finish, nothing new is taken");
    running.drain().await
}

/// A process that can stop in order.
pub(crate) trait Stoppable {
    /// How long it serves on before it drains.
    fn grace(&self) -> Duration;
    /// Serves on for that long, and says that it is not ready.
    async fn leave(&self);
    /// Lets requests in flight finish.
    async fn drain(self) -> Drained;
}

impl Stoppable for Server {
    fn grace(&self) -> Duration {
        self.grace()
    }

    async fn leave(&self) {
        self.leave().await;
    }

    async fn drain(self) -> Drained {
        self.drain().await
    }
}

impl Stoppable for Proxy {
    fn grace(&self) -> Duration {
        self.grace()
    }

    async fn leave(&self) {
        self.leave().await;
    }

    async fn drain(self) -> Drained {
        self.drain().await
    }
}

/// Which signal told a process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopKind {
    /// SIGINT: a person at a terminal, behind no load balancer.
    Interrupt,
    /// SIGTERM: whatever supervises the process.
    Terminate,
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

    pub(crate) async fn next(&mut self) -> StopKind {
        tokio::select! {
            _ = self.interrupt.recv() => StopKind::Interrupt,
            _ = self.terminate.recv() => StopKind::Terminate,
        }
    }
}

/// Writes a line to standard error, with the time, as every line of the log has it.
pub(crate) fn say(name: &str, what: &str) {
    eprintln!("{} {name}: {what}", rfc3339(SystemClock::new().now()));
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

/// Reads what is written of each request.
pub(crate) fn access_log() -> impl TypedValueParser<Value = AccessLog> {
    words([
        ("text", "A line for people", AccessLog::Text),
        ("json", "A line of JSON", AccessLog::Json),
        ("off", "Nothing", AccessLog::Off),
    ])
}
