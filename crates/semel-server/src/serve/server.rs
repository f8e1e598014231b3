//! A running server: started, drained.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::metrics::{Part, register};
use semel::{Result, Semel};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::app::{Gauges, Shown, shown};
use super::dispatch::Dispatch;
use super::settings::ServerSettings;
use super::waits::Waits;
use crate::access::{Audit, Tokens};
use crate::admin;
use crate::monitoring::StoreHealth;
use crate::state::AppState;
use semel_listen::tls::Prepared;
use semel_listen::{Acceptor, Certificate, Drained, InFlight, Peers, Phase, ServerTls, Timeouts, listen};
use semel_ops::access_log::AccessLogWriter;
use semel_ops::store_url::WakeUps;

/// A running server. It ends when it is dropped; [`drain`](Self::drain) ends it well.
pub struct Server {
    listening: SocketAddr,
    served: Arc<AppState>,
    in_flight: Arc<InFlight>,
    peers: Arc<Peers>,
    certificate: Option<Certificate>,
    phase: watch::Sender<Phase>,
    timeouts: Timeouts,
    access_log: Option<Arc<AccessLogWriter>>,
    _wake_ups: Option<WakeUps>,
}

/// A server that is being started: boxed, so that it is compiled once, here.
pub type Starting = Pin<Box<dyn Future<Output = Result<Server>> + Send>>;

impl Server {
    /// Opens the store, and serves from now on. Without tokens, only on an address that nobody but this machine reaches.
    pub fn start(settings: ServerSettings) -> Starting {
        Box::pin(Self::started(settings))
    }

    async fn started(settings: ServerSettings) -> Result<Self> {
        settings.check()?;
        // Before anything else: who listens is known at once, and counters find their recorder.
        let listener = listen(settings.listener.listen)?;
        let scraped = admin::recorder();
        let opened = Arc::new(settings.store.open().await?);
        let semel = Semel::builder_shared(opened.store()).build()?;
        let wake_ups = opened.wake_ups(&semel);
        let served = Arc::new(AppState {
            audit: Audit::to(settings.audit.clone())?,
            waits: Waits::new(settings.waiting_max),
            health: StoreHealth::start(Arc::clone(&opened), settings.store_check_every),
            ..AppState::new(semel, opened, settings.store.to_string(), settings.tokens.clone())
        });
        let (phase, watched) = watch::channel(Phase::Serving);
        let in_flight = InFlight::new(settings.listener.limits.in_flight_max);
        let gauges = gauges(&in_flight);
        let access_log = AccessLogWriter::start(settings.access_log)?.map(Arc::new);
        let dispatch = Dispatch {
            app: shown(Arc::clone(&served), gauges, Shown::Everything),
            served: Arc::clone(&served),
            in_flight: Arc::clone(&in_flight),
            timeouts: settings.listener.timeouts,
            is_over_tls: settings.listener.tls.is_some(),
            join_trace: settings.join_trace,
            access_log: access_log.clone(),
            trusted_proxies: settings.trusted_proxies.clone(),
        };
        let acceptor = Acceptor::new(listener, &settings.listener, Arc::new(dispatch), watched.clone())?;
        let (listening, peers, certificate) = (acceptor.address()?, acceptor.peers(), acceptor.certificate());
        tokio::spawn(acceptor.run());
        if let Some(scraped) = scraped {
            register(&[Part::Engine, Part::Listener, Part::Monitoring]);
            tokio::spawn(scraped.sum_up(watched));
        }
        let timeouts = settings.listener.timeouts;
        Ok(Self {
            listening,
            served,
            in_flight,
            peers,
            certificate,
            phase,
            timeouts,
            access_log,
            _wake_ups: wake_ups,
        })
    }

    /// Where callers come.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// What the store's acknowledgements survive, in words for people, by the settings that were found.
    pub fn survives(&self) -> String {
        self.served.store.survives()
    }

    /// What it works on.
    pub fn served(&self) -> &Arc<AppState> {
        &self.served
    }

    /// Requests that are being answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Knows these tokens from now on, instead of those before. From some to none, or from none to some, takes a restart.
    pub fn reload(&self, tokens: &Tokens) -> Result<()> {
        self.served.tokens.replace(tokens)
    }

    /// Reads the certificate as its files are now; `None` for plain HTTP. From that to TLS, or back, takes a restart.
    pub fn prepare_certificate(&self, tls: Option<&ServerTls>) -> Result<Option<Prepared>> {
        let both = self.certificate.as_ref().zip(tls);
        both.map(|(certificate, tls)| certificate.prepare(tls)).transpose()
    }

    /// How long it serves on once it [leaves](Self::leave).
    pub fn grace(&self) -> Duration {
        self.timeouts.grace
    }

    /// Serves everything for `grace` more, new connections too, and says that it is not ready: load balancers go elsewhere
    /// before anything is refused.
    pub async fn leave(&self) {
        self.served.waits.leave();
        self.phase.send_replace(Phase::Leaving);
        sleep(self.timeouts.grace).await;
    }

    /// Takes nothing new, ends all waiting, lets what runs finish, and says what came of it.
    pub async fn drain(self) -> Drained {
        let at_first = self.in_flight.count();
        self.served.waits.drain();
        let over = async {
            self.in_flight.emptied().await;
            // Until here, whoever asked was told that the server stops. Now nobody is answered any more.
            self.phase.send_replace(Phase::Draining);
            self.peers.emptied().await;
        };
        let in_time = timeout(self.timeouts.drain, over).await.is_ok();
        let cut_off = if in_time { 0 } else { self.in_flight.count() };
        self.phase.send_replace(Phase::Over);
        // Counts of duplicates are written, unless the store does not answer.
        match timeout(self.timeouts.drain, self.served.semel.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "semel: the store was not closed in order"),
            Err(_) => tracing::warn!("semel: the store was not closed in time"),
        }
        if let Some(log) = &self.access_log {
            log.end().await;
        }
        Drained { finished: at_first.saturating_sub(cut_off), cut_off }
    }
}

fn gauges(in_flight: &Arc<InFlight>) -> Gauges {
    let in_flight = Arc::clone(in_flight);
    Gauges::new(move || {
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 of anything here")]
        metrics::gauge!(semel::metrics::IN_FLIGHT.name).set(in_flight.count() as f64);
    })
}
