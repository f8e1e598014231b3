//! A running proxy: started, drained.

use std::net::SocketAddr;
use std::sync::Arc;

use semel::Result;
use tokio::sync::watch;

use super::client::{Door, listen};
use super::forward::Forward;
use super::front::Front;
use super::phase::Phase;
use super::settings::ProxySettings;
use super::upstream::Upstream;

/// A running proxy.
pub struct Proxy {
    listening: SocketAddr,
    phase: watch::Sender<Phase>,
}

impl Proxy {
    /// Opens the store, and serves from now on.
    pub async fn start(settings: ProxySettings) -> Result<Self> {
        let upstream = Arc::new(Upstream::new(&settings)?);
        let forward = Forward::new(&settings, upstream)?;
        let listener = listen(settings.listen)?;
        let listening = listener.local_addr().map_err(|error| {
            semel::Error::new(semel::ErrorKind::Unavailable, format!("the listener has no address: {error}"))
        })?;
        let (phase, watched) = watch::channel(Phase::Serving);
        let front = Arc::new(Front::new(forward, settings.timeouts));
        tokio::spawn(Door::new(listener, &settings, front, watched)?.run());
        Ok(Self { listening, phase })
    }

    /// Where clients come.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }
}
