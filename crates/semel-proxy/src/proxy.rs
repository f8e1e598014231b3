//! A running proxy: started, reloaded, drained.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::{Result, Semel, Sweeper};
use semel_http::IdempotencyLayer;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::access_log::{Form, Log};
use super::forward::{Forward, Shared};
use super::front::{Front, Observed};
use super::settings::ProxySettings;
use super::upstream::Upstream;
use crate::admin::{AdminSide, Running};
use semel_listen::{Acceptor, InFlight, Peers, Phase, listen};
use semel_ops::store_url::WakeUps;

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

/// A proxy that is being started: boxed, so that it is compiled once, here.
pub type Starting = Pin<Box<dyn Future<Output = Result<Proxy>> + Send>>;

/// How a proxy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Requests and runs that were in flight, and came to their end.
    pub finished: usize,
    /// Those that were still in flight when the time was up. Of what ran with a key, the lapse policy decides.
    pub cut_off: usize,
}

impl Proxy {
    /// Opens the store, and serves from now on; without an admin side, whatever the settings say of one.
    pub fn start(settings: ProxySettings) -> Starting {
        Box::pin(Self::started(settings, None))
    }

    /// The same, with an admin side if the settings have an address for one.
    pub fn start_with_admin(settings: ProxySettings, admin: AdminSide) -> Starting {
        Box::pin(Self::started(settings, Some(admin)))
    }

    async fn started(mut settings: ProxySettings, admin: Option<AdminSide>) -> Result<Self> {
        apply_bounds(&mut settings);
        // Before anything else: an address that is taken is reported at once.
        let listener = listen(settings.listen)?;
        let admin = admin.zip(settings.admin.map(listen).transpose()?);
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
        let acceptor =
            Acceptor::new(listener, settings.tls.as_ref(), limits, Arc::clone(&front) as _, watched.clone())?;
        let (listening, peers) = (acceptor.address()?, acceptor.peers());
        let running = || Running {
            semel: semel.clone(),
            store: Arc::clone(&opened),
            store_address: settings.store.clone(),
            measure: gauges(&front, &peers),
            phase: watched,
        };
        let admin = admin.map(|(admin, listener)| admin(listener, running())).transpose()?;
        tokio::spawn(acceptor.run());
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
            ("tokens", now.admin_tokens_file.is_none() != settings.admin_tokens_file.is_none()),
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

/// Sets the gauges that are only known when they are asked for.
fn gauges(front: &Arc<Front>, peers: &Arc<Peers>) -> Arc<dyn Fn() + Send + Sync> {
    let (front, peers) = (Arc::clone(front), Arc::clone(peers));
    Arc::new(move || {
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 of anything here")]
        let exact = |count: usize| count as f64;
        metrics::gauge!("semel_http_in_flight").set(exact(front.in_flight().count()));
        metrics::gauge!("semel_http_runs").set(exact(front.layer().running()));
        metrics::gauge!("semel_http_connections").set(exact(peers.count()));
    })
}
