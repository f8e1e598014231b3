//! Accepts connections, as many as there may be; each is a file that this process has open.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use semel::{Error, ErrorKind, Result};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::config::{Limits, ListenerConfig};
use crate::connection::ConnectionConfig;
use crate::http_service::HttpService;
use crate::phase::{Phase, reached};
use crate::places::Peers;
use crate::tls::Certificate;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 4_096;
/// How long to leave connections waiting while no more files can be opened.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// Files that are never for clients: the store's, the logs', the listeners'.
const FILES_RESERVED: u64 = 48;

/// Accepts connections.
pub struct Acceptor {
    listener: TcpListener,
    connections: Arc<ConnectionConfig>,
    peers: Arc<Peers>,
}

/// Listens, and takes nothing yet.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    let bound = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bound().map_err(|error| {
        let message =
            format!("cannot listen on {address}: {error}; is something else there? Choose another address");
        Error::new(ErrorKind::Unavailable, message).caused_by(error)
    })
}

impl Acceptor {
    /// Accepts on this listener, once it [runs](Self::run).
    pub fn new(
        listener: TcpListener,
        config: &ListenerConfig,
        service: Arc<dyn HttpService>,
        phase: watch::Receiver<Phase>,
    ) -> Result<Self> {
        let tls = config.tls.as_ref().map(Certificate::read).transpose()?;
        let (limits, timeouts) = (config.limits, config.timeouts);
        let peers = Peers::new(limits.connections_max, limits.connections_per_peer_max);
        let connections = Arc::new(ConnectionConfig { service, tls, limits, timeouts, phase });
        Ok(Self { listener, connections, peers })
    }

    /// How many connections there are.
    pub fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// The certificate that clients are shown; `None` if they come by plain HTTP.
    pub fn certificate(&self) -> Option<Certificate> {
        self.connections.tls.clone()
    }

    /// Where it is.
    pub fn address(&self) -> Result<SocketAddr> {
        let lost = |error| {
            Error::new(ErrorKind::Unavailable, format!("the listener has no address: {error}; start again"))
        };
        self.listener.local_addr().map_err(lost)
    }

    /// Takes connections until nothing new is to be taken.
    pub async fn run(self) {
        let mut phase = self.connections.phase.clone();
        loop {
            tokio::select! {
                biased;
                () = reached(&mut phase, Phase::Draining) => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.take(stream, peer),
                    Err(error) if is_of_one(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "semel: no connection can be taken");
                        self.peers.evict_one();
                        tokio::time::sleep(OUT_OF_FILES).await;
                    }
                },
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        // One that has no place is closed at once: a client that hears so can go elsewhere, one that waits cannot.
        let Some(place) = self.peers.place(peer.ip()) else {
            metrics::counter!(semel::metrics::CONNECTIONS_REFUSED.name).increment(1);
            return;
        };
        tokio::spawn(Arc::clone(&self.connections).serve(stream, peer, place));
    }
}

/// Whether only this one connection failed, before it was taken.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

impl Limits {
    /// The same, with no more connections than this many open files allow: a part of them is kept for the store, the logs and
    /// connections to other servers. One peer keeps its share of them, as far as its bound is more than half of
    /// what is left.
    #[must_use]
    pub fn within(mut self, open_files: u64) -> Self {
        let for_clients = (open_files.saturating_sub(FILES_RESERVED) / 3).saturating_mul(2);
        let allowed = usize::try_from(for_clients).unwrap_or(usize::MAX).max(1);
        if allowed < self.connections_max {
            let half = (allowed / 2).max(1);
            if self.connections_per_peer_max > half {
                let share = self.connections_per_peer_max.saturating_mul(allowed);
                let share = share.checked_div(self.connections_max).unwrap_or(half);
                self.connections_per_peer_max = share.max(half);
            }
            self.connections_max = allowed;
        }
        self
    }
}

/// Raises what this process may have open towards `wanted`, as far as it may by itself. Says how many that are; `None`
/// for any number.
pub fn raise_open_files(wanted: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if current >= wanted {
        return Some(current);
    }
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let changed = Rlimit { current: Some(raised), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, changed) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        let limits = Limits::default();
        assert_eq!(limits.within(1_000_000), limits);
        let few = limits.within(200);
        assert_eq!((few.connections_max, few.connections_per_peer_max), (100, 50));
        assert_eq!(limits.within(10).connections_max, 1);
        let few_of_peer = Limits { connections_per_peer_max: 2, ..limits };
        assert_eq!(few_of_peer.within(200).connections_per_peer_max, 2);
    }
}
