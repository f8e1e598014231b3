//! Connections come in, as many as there may be.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use semel::{Error, ErrorKind, Result};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::connection::Manner;
use super::peers::Peers;
use crate::proxy::front::Front;
use crate::proxy::phase::{Phase, no_longer_serving};
use crate::proxy::settings::ProxySettings;
use crate::proxy::tls;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 4_096;
/// How long to leave connections waiting while no more files can be opened.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// Where connections come in.
pub(in crate::proxy) struct Door {
    listener: TcpListener,
    manner: Arc<Manner>,
    peers: Arc<Peers>,
}

/// Listens, and takes nothing yet.
pub(in crate::proxy) fn listen(address: SocketAddr) -> Result<TcpListener> {
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

impl Door {
    pub(in crate::proxy) fn new(
        listener: TcpListener,
        settings: &ProxySettings,
        front: Arc<Front>,
        peers: Arc<Peers>,
        phase: watch::Receiver<Phase>,
    ) -> Result<Self> {
        let tls = settings.tls.as_ref().map(tls::to_clients).transpose()?.map(TlsAcceptor::from);
        let (bounds, timeouts) = (settings.bounds, settings.timeouts);
        Ok(Self { listener, manner: Arc::new(Manner { front, tls, bounds, timeouts, phase }), peers })
    }

    /// Takes connections until nothing new is to be taken.
    pub(in crate::proxy) async fn run(self) {
        let mut phase = self.manner.phase.clone();
        loop {
            tokio::select! {
                biased;
                () = no_longer_serving(&mut phase) => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.take(stream, peer),
                    Err(error) if is_of_one(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "semel: no connection can be taken");
                        tokio::time::sleep(OUT_OF_FILES).await;
                    }
                },
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        // One that has no place is closed at once: a client that hears so can go elsewhere, one that waits cannot.
        let Some(place) = self.peers.place(peer.ip()) else {
            metrics::counter!("semel_http_connections_refused_total").increment(1);
            return;
        };
        tokio::spawn(Arc::clone(&self.manner).serve(stream, peer, Arc::new(place)));
    }
}

/// Whether only this one connection failed, before it was taken.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
