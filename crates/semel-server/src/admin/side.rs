//! The listener for those who run a process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::recorder;
use crate::serve::{Dispatch, Gauges, Shown, shown};
use crate::state::AppState;
use semel_listen::{Acceptor, InFlight, Limits, Phase, phase};

/// Nobody who runs a process needs more, and whoever else comes here gets no more.
const LIMITS: Limits = Limits {
    connections_max: 256,
    connections_per_peer_max: 192,
    head_bytes_max: 64 << 10,
    streams_max: 64,
    handshake: Duration::from_secs(10),
    head: Duration::from_secs(10),
    body_idle: Duration::from_secs(30),
};
const IN_FLIGHT_MAX: usize = 1_024;
const BODY: Duration = Duration::from_secs(30);

/// What those who run a process may look at.
pub struct Side {
    served: Arc<AppState>,
    gauges: Gauges,
}

impl Side {
    /// What is looked at, and what sets the gauges that are only known when they are asked for.
    pub fn new(state: AppState, measure: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { served: Arc::new(state), gauges: Gauges(measure) }
    }

    /// Answers on this listener until the process has stopped.
    pub fn serve(self, listener: TcpListener, watched: watch::Receiver<Phase>) -> Result<SocketAddr> {
        let address = listener.local_addr().map_err(|error| {
            let message = format!("the admin listener has no address: {error}; start again");
            semel::Error::new(semel::ErrorKind::Unavailable, message)
        })?;
        // Without tokens, what others can reach shows no keys and lets nobody act.
        let is_open = address.ip().is_loopback() || !self.served.tokens.is_empty();
        let what = if is_open { Shown::ReadSide } else { Shown::HealthOnly };
        let dispatch = Dispatch {
            app: shown(Arc::clone(&self.served), self.gauges, what),
            served: Arc::clone(&self.served),
            in_flight: InFlight::new(IN_FLIGHT_MAX),
            body_idle: LIMITS.body_idle,
            body: BODY,
            is_over_tls: false,
            join_trace: None,
        };
        let (own, own_phase) = watch::channel(Phase::Serving);
        tokio::spawn(Acceptor::new(listener, None, LIMITS, Arc::new(dispatch), own_phase)?.run());
        if let Some(scraped) = recorder() {
            tokio::spawn(scraped.sum_up(watched.clone()));
        }
        tokio::spawn(follow(watched, self.served, own));
        Ok(address)
    }
}

/// While the process drains, it is still said how it is; after that, nothing is.
async fn follow(mut watched: watch::Receiver<Phase>, served: Arc<AppState>, own: watch::Sender<Phase>) {
    phase::no_longer_serving(&mut watched).await;
    served.waits.drain();
    phase::over(&mut watched).await;
    own.send_replace(Phase::Over);
}
