//! A running proxy: started, reloaded, drained.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::{Result, Semel};
use semel_http::IdempotencyLayer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::abandoned::Abandoned;
use super::forward::{Forward, Shared};
use super::front::{Chain, Front, Observed};
use super::probe::Prober;
use super::settings::{ProxySettings, UpstreamLimits};
use super::upstream::Upstream;
use semel_listen::{
    Acceptor, Certificate, Drained, InFlight, Limits, ListenerConfig, Peers, Phase, listen, raise_open_files,
};
use semel_ops::access_log::AccessLogWriter;
use semel_ops::store_url::{Address, Opened, WakeUps};

/// How often connections to the upstream are looked through.
const TIDY_EVERY: Duration = Duration::from_secs(1);
/// How long requests that are cut off may take to end.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(1);

/// A running proxy. It ends when it is dropped; [`drain`](Self::drain) ends it well.
pub struct Proxy {
    listening: SocketAddr,
    admin: Option<SocketAddr>,
    survives: String,
    settings: ProxySettings,
    front: Arc<Front>,
    peers: Arc<Peers>,
    certificate: Option<Certificate>,
    shared: Shared,
    phase: watch::Sender<Phase>,
    semel: Semel,
    _wake_ups: Option<WakeUps>,
}

/// A proxy that is being started: boxed, so that it is compiled once, here.
pub type Starting = Pin<Box<dyn Future<Output = Result<Proxy>> + Send>>;

/// The admin side of a proxy, injected so that the proxy is built without the dashboard: serves on the admin listener until the proxy has stopped, and returns its address: with health, metrics and the dashboard in
/// `semel_server::admin`.
pub type AdminSide = Box<dyn FnOnce(TcpListener, Running) -> Result<SocketAddr> + Send>;

/// What the admin side may look at.
pub struct Running {
    /// The engine.
    pub semel: Semel,
    /// Its store.
    pub store: Arc<Opened>,
    /// Where that is.
    pub store_address: Address,
    /// Sets the gauges that are only known when they are asked for.
    pub measure: Arc<dyn Fn() + Send + Sync>,
    /// How far the proxy is from its end.
    pub phase: watch::Receiver<Phase>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("store_address", &self.store_address).finish_non_exhaustive()
    }
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
        settings.http.body_timeout = settings.listener.timeouts.body;
        // Before anything else: an address that is taken is reported at once.
        let listener = listen(settings.listener.listen)?;
        let admin = admin.zip(settings.admin.map(listen).transpose()?);
        let opened = Arc::new(settings.store.open().await?);
        let semel = Semel::builder_shared(opened.store()).build()?;
        let layer = IdempotencyLayer::with_settings(
            semel.clone(),
            settings.principal.clone(),
            settings.http.clone(),
        )?;

        let (phase, watched) = watch::channel(Phase::Serving);
        let abandoned = Abandoned::new();
        let shared = Shared {
            upstream: Arc::new(Upstream::new(&settings, abandoned.clone())?),
            abandoned,
            in_flight: InFlight::new(settings.listener.limits.in_flight_max),
            phase: watched.clone(),
            is_over_tls: settings.listener.tls.is_some(),
        };
        let forward = Forward::new(&settings, shared.clone())?;
        settings.probe_client.connect(Prober::new(&settings, Arc::clone(&shared.upstream))?);
        let log = AccessLogWriter::start(settings.access_log)?;
        let in_flight = Arc::clone(&shared.in_flight);
        let body_idle = settings.listener.timeouts.body_idle;
        let chain = Chain::new(layer, forward, settings.trusted_proxies.clone());
        let front = Arc::new(Front::new(chain, in_flight, Observed::new(log), body_idle));
        let limits = within_open_files(settings.listener.limits);
        let config = ListenerConfig { limits, ..settings.listener.clone() };
        let acceptor = Acceptor::new(listener, &config, Arc::clone(&front) as _, watched.clone())?;
        let (listening, peers, certificate) = (acceptor.address()?, acceptor.peers(), acceptor.certificate());
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
        let survives = opened.survives();
        Ok(Self {
            listening,
            admin,
            survives,
            settings,
            front,
            peers,
            certificate,
            shared,
            phase,
            semel,
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

    /// What the store's acknowledgements survive, in words for people, by the settings that were found at the start.
    pub fn survives(&self) -> &str {
        &self.survives
    }

    /// Takes new rules, callers, profile, trusted proxies, and the certificate as its files are now. Requests that are under way
    /// end by the old ones. If one of the new ones cannot be, all old ones stay.
    pub fn reload(&self, mut settings: ProxySettings) -> Result<()> {
        settings.http.body_timeout = settings.listener.timeouts.body;
        // Where requests go, and what they go through, is not changed under way.
        settings.upstream = self.settings.upstream.clone();
        settings.upstream_version = self.settings.upstream_version;
        let certificate = match (&self.certificate, &settings.listener.tls) {
            (Some(certificate), Some(tls)) => Some(certificate.prepare(tls)?),
            // From plain to TLS, or back, takes a restart.
            _ => None,
        };
        let layer = self.front.layer().reloaded(settings.principal.clone(), settings.http.clone())?;
        let prober = Prober::new(&settings, Arc::clone(&self.shared.upstream))?;
        let forward = Forward::new(&settings, self.shared.clone())?;
        settings.probe_client.connect(prober);
        self.front.replace(Chain::new(layer, forward, settings.trusted_proxies));
        if let Some(certificate) = certificate {
            certificate.put_in_place();
        }
        Ok(())
    }

    /// What of these settings would need a restart, in words for people.
    pub fn needs_restart(&self, settings: &ProxySettings) -> Vec<&'static str> {
        let now = &self.settings;
        let held = |of: &ProxySettings| (of.http.held_bytes_max, of.http.caller_held_bytes_max);
        let counts = |of: &ProxySettings| (of.upstream_limits.idle_max, of.http.probes_in_flight_max);
        let bounds = |of: &ProxySettings| (of.listener.limits, counts(of), held(of));
        let timeouts = |of: &ProxySettings| {
            let upstream = UpstreamLimits { idle_max: 0, ..of.upstream_limits };
            (of.listener.timeouts, upstream, of.http.store_timeout)
        };
        [
            ("listen", now.listener.listen != settings.listener.listen),
            ("admin", now.admin != settings.admin),
            ("tokens", now.admin_tokens_file.is_none() != settings.admin_tokens_file.is_none()),
            ("audit", now.audit != settings.audit),
            ("upstream", now.upstream != settings.upstream),
            ("the upstream's version", now.upstream_version != settings.upstream_version),
            ("the upstream's authorities", now.upstream_authorities != settings.upstream_authorities),
            ("store", now.store != settings.store),
            ("tls", now.listener.tls.is_some() != settings.listener.tls.is_some()),
            ("the access log", now.access_log != settings.access_log),
            ("bounds", bounds(now) != bounds(settings)),
            ("timeouts", timeouts(now) != timeouts(settings)),
        ]
        .into_iter()
        .filter_map(|(what, is_other)| is_other.then_some(what))
        .collect()
    }

    /// How long it serves on once it [leaves](Self::leave).
    pub fn grace(&self) -> Duration {
        self.settings.listener.timeouts.grace
    }

    /// Serves everything for `grace` more, new connections too, and says that it is not ready: load balancers go elsewhere
    /// before anything is refused.
    pub async fn leave(&self) {
        self.phase.send_replace(Phase::Leaving);
        sleep(self.settings.listener.timeouts.grace).await;
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
        let in_time = timeout(self.settings.listener.timeouts.drain, over).await.is_ok();
        let cut_off = if in_time { 0 } else { left() };
        self.phase.send_replace(Phase::Over);
        // What was cut off ends now, and its lines belong into the log before that ends, too.
        let _ = timeout(CUT_OFF_TIMEOUT, self.front.in_flight().emptied()).await;
        // Counts of duplicates are written, unless the store does not answer.
        match timeout(self.settings.listener.timeouts.drain, self.semel.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "semel: the store was not closed in order"),
            Err(_) => tracing::warn!("semel: the store was not closed in time"),
        }
        self.front.end_log().await;
        Drained { finished: at_first.saturating_sub(cut_off), cut_off }
    }
}

/// No more connections than open files allow: otherwise clients that only connect would keep the proxy from its upstream.
fn within_open_files(limits: Limits) -> Limits {
    // Every request may need two more files, for its connection to the upstream.
    let wanted = (limits.connections_max as u64).saturating_mul(3);
    let Some(open_files) = raise_open_files(wanted) else { return limits };
    let within = limits.within(open_files);
    if within != limits {
        tracing::warn!(
            open_files,
            connections_max = within.connections_max,
            "semel: connections_max is lowered to what open files allow; raise the limit (`ulimit -n`)"
        );
    }
    within
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
        metrics::gauge!(semel::metrics::IN_FLIGHT.name).set(exact(front.in_flight().count()));
        metrics::gauge!(semel::metrics::RUNS.name).set(exact(front.layer().running()));
        metrics::gauge!(semel::metrics::CONNECTIONS.name).set(exact(peers.count()));
    })
}
