//! The admin side of a process that is something else than a claim server: health, metrics and the dashboard, on a listener of
//! its own, on loopback by default.
//!
//! `/healthz`: the process is alive. `/readyz`: it can do its work, or why not. `/metrics`: for Prometheus.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use semel::Result;
use semel::metrics::{self, Part};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::serve::{Dispatch, Gauges, Shown, shown};
use crate::state::AppState;
use semel_listen::{Acceptor, InFlight, Limits, ListenerConfig, Phase, Timeouts, phase};

/// Nobody who runs a process needs more, and whoever else comes here gets no more.
const LIMITS: Limits = Limits {
    connections_max: 256,
    connections_per_peer_max: 192,
    in_flight_max: 1_024,
    head_bytes_max: 64 << 10,
    streams_max: 64,
};
const TIMEOUTS: Timeouts = Timeouts {
    handshake: Duration::from_secs(10),
    head: Duration::from_secs(10),
    body: Duration::from_secs(30),
    body_idle: Duration::from_secs(30),
    // It ends with the process, whose own timeouts these are.
    grace: Duration::ZERO,
    drain: Duration::ZERO,
};
/// Bounds of the histograms, in seconds: from a replay in memory to a slow upstream.
const SECONDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
/// How often what was recorded is summed up. Without it, histograms grow until somebody scrapes.
const SUM_UP_EVERY: Duration = Duration::from_secs(5);

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
            in_flight: InFlight::new(LIMITS.in_flight_max),
            timeouts: TIMEOUTS,
            is_over_tls: false,
            join_trace: None,
            access_log: None,
            trusted_proxies: Vec::new(),
        };
        let (own, own_phase) = watch::channel(Phase::Serving);
        let config = ListenerConfig { listen: address, tls: None, limits: LIMITS, timeouts: TIMEOUTS };
        tokio::spawn(Acceptor::new(listener, &config, Arc::new(dispatch), own_phase)?.run());
        if let Some(scraped) = recorder() {
            metrics::register(&[Part::Engine, Part::Listener, Part::Proxy, Part::Monitoring]);
            tokio::spawn(scraped.sum_up(watched.clone()));
        }
        tokio::spawn(follow(watched, self.served, own));
        Ok(address)
    }
}

/// While the process drains, it is still said how it is; after that, nothing is.
async fn follow(mut watched: watch::Receiver<Phase>, served: Arc<AppState>, own: watch::Sender<Phase>) {
    phase::reached(&mut watched, Phase::Leaving).await;
    served.waits.leave();
    phase::reached(&mut watched, Phase::Draining).await;
    served.waits.drain();
    phase::reached(&mut watched, Phase::Over).await;
    own.send_replace(Phase::Over);
}

/// The metrics of this process.
#[derive(Clone)]
pub struct Scraped(PrometheusHandle);

/// Installs the recorder of this process, once. `None` if the program installed one of its own, which then has them.
pub fn recorder() -> Option<Scraped> {
    static INSTALLED: OnceLock<Option<Scraped>> = OnceLock::new();
    INSTALLED.get_or_init(install).clone()
}

fn install() -> Option<Scraped> {
    let buckets =
        PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS);
    let handle = buckets.ok()?.install_recorder().ok()?;
    metrics::describe();
    Some(Scraped(handle))
}

impl Scraped {
    pub(crate) fn text(&self) -> String {
        self.0.render()
    }

    /// Sums up what was recorded, now and then, for as long as the process serves.
    pub(crate) async fn sum_up(self, mut phase: watch::Receiver<Phase>) {
        while timeout(SUM_UP_EVERY, phase::reached(&mut phase, Phase::Over)).await.is_err() {
            self.0.run_upkeep();
        }
    }
}
