//! A running proxy: started, reloaded, drained.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use semel::{Result, Semel, Sweeper};
use semel_http::IdempotencyLayer;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::forward::{Forward, Shared};
use super::front::{Front, Observed};
use super::log::{Form, Log};
use super::settings::ProxySettings;
use super::upstream::Upstream;
use crate::access::Audit;
use crate::admin::{self, Side};
use crate::listen::{Door, InFlight, Peers, Phase, listen};
use crate::serve::Gauges;
use crate::served::Served;
use crate::store::{Opened, WakeUps};

/// How often connections to the upstream are looked through.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// A running proxy. It ends when it is dropped; [`drain`](Self::drain) ends it well.
pub struct Proxy {
    listening: SocketAddr,
    admin: Option<SocketAddr>,
    survives: &'static str,
    settings: ProxySettings,
    front: Arc<Front>,
    peers: Arc<Peers>,
    shared: Shared,
    phase: watch::Sender<Phase>,
    sweeper: Sweeper,
    _wake_ups: Option<WakeUps>,
}

/// How a proxy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Requests and runs that were in flight, and came to their end.
    pub finished: usize,
    /// Those that were still in flight when the time was up. Of what ran with a key, the lapse policy decides.
    pub cut_off: usize,
}

impl Proxy {
    /// Opens the store, and serves from now on.
    pub async fn start(mut settings: ProxySettings) -> Result<Self> {
        apply_bounds(&mut settings);
        // Before anything else: who listens is known at once, and counters find their recorder.
        let listener = listen(settings.listen)?;
        let admin_listener = settings.admin.map(listen).transpose()?;
        if admin_listener.is_some() {
            admin::recorder();
        }
        let opened = Arc::new(settings.store.open().await?);
        let semel = Semel::builder_shared(opened.store()).build()?;
        let layer = IdempotencyLayer::with_settings(
            semel.clone(),
            settings.principal.clone(),
            settings.http.clone(),
        )?;

        let (phase, watched) = watch::channel(Phase::Serving);
        let bounds = settings.bounds;
        let shared = Shared {
            upstream: Arc::new(Upstream::new(&settings)?),
            in_flight: InFlight::new(bounds.in_flight_max),
            phase: watched.clone(),
        };
        let forward = Forward::new(&settings, shared.clone())?;
        let log = Form::of(settings.access_log).map(Log::new).transpose()?;
        let in_flight = Arc::clone(&shared.in_flight);
        let front = Front::new(layer, forward, in_flight, Observed::new(log), settings.timeouts.body_idle);
        let front = Arc::new(front);
        let limits = settings.limits();
        let door = Door::new(listener, settings.tls.as_ref(), limits, Arc::clone(&front), watched.clone())?;
        let (listening, peers) = (door.address()?, door.peers());
        let side = || side(&settings, &semel, &opened, gauges(&front, &peers));
        let admin = admin_listener.map(|listener| side()?.serve(listener, watched)).transpose()?;
        tokio::spawn(door.run());
        tokio::spawn(tidy(Arc::downgrade(&shared.upstream)));
        let wake_ups = opened.wake_ups(&semel);
        let (survives, sweeper) = (opened.survives(), semel.sweeper().start());
        Ok(Self {
            listening,
            admin,
            survives,
            settings,
            front,
            peers,
            shared,
            phase,
            sweeper,
            _wake_ups: wake_ups,
        })
    }

    /// Where clients come.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// Where health, metrics and the dashboard are, if anywhere.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// What the store's acknowledgements survive, in words for people.
    pub fn survives(&self) -> &'static str {
        self.survives
    }

    /// Takes new rules, callers, profile and trusted proxies. Requests that are under way end by the old ones. If the
    /// new ones cannot be, the old ones stay.
    pub fn reload(&self, mut settings: ProxySettings) -> Result<()> {
        apply_bounds(&mut settings);
        // Where requests go, and what they go through, is not changed under way.
        settings.upstream = self.settings.upstream.clone();
        settings.upstream_version = self.settings.upstream_version;
        if !self.settings.admin_tokens.is_empty() && !settings.admin_tokens.is_empty() {
            self.settings.admin_tokens.replace(&settings.admin_tokens)?;
        }
        let layer = self.front.layer().reloaded(settings.principal.clone(), settings.http.clone())?;
        self.front.replace(layer, Forward::new(&settings, self.shared.clone())?);
        Ok(())
    }

    /// What of these settings would need a restart, in words for people.
    pub fn needs_restart(&self, settings: &ProxySettings) -> Vec<&'static str> {
        let now = &self.settings;
        [
            ("listen", now.listen != settings.listen),
            ("admin", now.admin != settings.admin),
            ("tokens", now.admin_tokens.is_empty() != settings.admin_tokens.is_empty()),
            ("audit", now.audit != settings.audit),
            ("upstream", now.upstream != settings.upstream),
            ("the upstream's version", now.upstream_version != settings.upstream_version),
            ("the upstream's authorities", now.upstream_authorities != settings.upstream_authorities),
            ("store", now.store != settings.store),
            ("tls", now.tls != settings.tls),
            ("the access log", now.access_log != settings.access_log),
            ("bounds", now.bounds != settings.bounds),
            ("timeouts", now.timeouts != settings.timeouts),
        ]
        .into_iter()
        .filter_map(|(what, is_other)| is_other.then_some(what))
        .collect()
    }

    /// Takes nothing new, lets what runs finish, and says what came of it.
    pub async fn drain(self) -> Drained {
        let layer = self.front.layer();
        let left = || self.front.in_flight().count().max(layer.running());
        let at_first = left();
        self.phase.send_replace(Phase::Draining);
        let over = async {
            self.front.in_flight().emptied().await;
            layer.none_running().await;
            // The last answers may still be on their way out.
            self.peers.emptied().await;
        };
        let in_time = timeout(self.settings.timeouts.drain, over).await.is_ok();
        let cut_off = if in_time { 0 } else { left() };
        self.phase.send_replace(Phase::Over);
        self.sweeper.stop().await;
        self.front.end_log().await;
        Drained { finished: at_first.saturating_sub(cut_off), cut_off }
    }
}

/// What the proxy is told goes for its layer, too.
fn apply_bounds(settings: &mut ProxySettings) {
    settings.http.held_bytes_max = settings.bounds.held_bytes_max;
    settings.http.store_timeout = settings.timeouts.store;
    settings.http.body_timeout = settings.timeouts.body;
}

/// Closes idle connections to the upstream that are past their time, for as long as there is a proxy.
async fn tidy(upstream: std::sync::Weak<Upstream>) {
    loop {
        sleep(TIDY_EVERY).await;
        match upstream.upgrade() {
            Some(upstream) => upstream.tidy(),
            None => return,
        }
    }
}

/// What those who run the proxy may look at.
fn side(settings: &ProxySettings, semel: &Semel, store: &Arc<Opened>, gauges: Gauges) -> Result<Side> {
    let (address, tokens) = (settings.store.to_string(), settings.admin_tokens.clone());
    let served = Served {
        audit: settings.audit.clone().map_or_else(|| Ok(Audit::to_log()), Audit::to_file)?,
        ..Served::new(semel.clone(), Arc::clone(store), address, tokens)
    };
    Ok(Side { served: Arc::new(served), gauges })
}

fn gauges(front: &Arc<Front>, peers: &Arc<Peers>) -> Gauges {
    let (front, peers) = (Arc::clone(front), Arc::clone(peers));
    Gauges::new(move || {
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 of anything here")]
        let exact = |count: usize| count as f64;
        metrics::gauge!("semel_http_in_flight").set(exact(front.in_flight().count()));
        metrics::gauge!("semel_http_runs").set(exact(front.layer().running()));
        metrics::gauge!("semel_http_connections").set(exact(peers.count()));
    })
}
