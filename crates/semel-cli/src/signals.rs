//! What a running process is told by signals.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a process is told while it runs.
pub(crate) enum Told {
    /// SIGHUP.
    Reload,
    /// SIGTERM, SIGINT.
    Stop,
}

pub(crate) struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.hangup.recv() => Told::Reload,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.terminate.recv() => Told::Stop,
        }
    }

    pub(crate) async fn stopped(&mut self) {
        while !matches!(self.next().await, Told::Stop) {}
    }
}
