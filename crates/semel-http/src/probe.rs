//! A probe: the application's function that finds out what became of a run whose end is not known.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, Uri, request};
use metrics::{counter, gauge, histogram};
use semel::record::Record;
use semel::{Claim, Outcome, Probed, RecordId};
use tokio::time::{Instant, timeout};

use crate::identity::client_target;
use crate::profile::Rules;
use crate::stored_response::{Reply, outcome};

/// How long a probe may take, unless said otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

type Answering = Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>;

/// Finds out what became of a run whose lease lapsed, or whose outcome is unknown. It is asked by a retry, one at a time for
/// a key and at most every 10 s. With a probe, the lapse policy is `Hold`.
///
/// ```
/// use semel_http::{Probe, ProbeAnswer, Rules};
///
/// let probe = Probe::new(|request| async move {
///     // Look up the charge that was made under `request.key`.
///     let _ = request.key;
///     ProbeAnswer::CannotTell
/// });
/// let rules = Rules { probe: Some(probe), ..Rules::default() };
/// # let _ = rules;
/// ```
#[derive(Clone)]
pub struct Probe {
    ask: Arc<dyn Fn(ProbeRequest) -> Answering + Send + Sync>,
    timeout: Duration,
    description: Option<Arc<str>>,
}

/// What a probe is asked about: the request of the retry that asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProbeRequest {
    /// The client's key.
    pub key: Box<str>,
    /// The method of the request.
    pub method: Method,
    /// Its target, as the client sent it.
    pub target: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// The attempt whose end is not known, starting at 1.
    pub attempt: u32,
    /// The longest body of a response that is kept. Of a longer one, [`Landed`](ProbeAnswer::Landed) keeps the status alone.
    pub response_bytes_max: usize,
}

/// What a probe found out.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once; a box would be in the way of callers")]
pub enum ProbeAnswer {
    /// The run took effect, and this is its response: retries get it.
    Landed(Reply),
    /// The run took no effect: the retry runs, as the next attempt.
    NotLanded,
    /// Not known: the key stays held.
    CannotTell,
}

impl Probe {
    /// A probe that asks this function. It may take 5 s; after that the answer is `CannotTell`.
    pub fn new<F, Fut>(ask: F) -> Self
    where
        F: Fn(ProbeRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ProbeAnswer> + Send + 'static,
    {
        Self {
            ask: Arc::new(move |request| Box::pin(ask(request))),
            timeout: TIMEOUT_DEFAULT,
            description: None,
        }
    }

    /// The same probe with a description, for logs and settings that are printed.
    #[must_use]
    pub fn described(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Its description, if it has one.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// How long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a claim that probes may take longer than others.
    pub(crate) fn timeout_span(&self) -> Duration {
        self.timeout
    }

    /// The claim with this probe, for the request of these parts.
    pub(crate) fn join(&self, claim: Claim, rules: &Arc<Rules>, parts: &request::Parts) -> Claim {
        let (probe, rules) = (self.clone(), Arc::clone(rules));
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        let target = client_target(&parts.extensions, &parts.uri).clone();
        claim.probe(move |record: Record| {
            let request = ProbeRequest {
                key: record.key.name().into(),
                method: method.clone(),
                target: target.clone(),
                headers: headers.clone(),
                attempt: record.attempt,
                response_bytes_max: rules.response_bytes_max,
            };
            let (probe, rules) = (probe.clone(), Arc::clone(&rules));
            async move { probe.found(request, record.key.id(), &rules).await }
        })
    }

    /// Asks, and counts and logs what was found.
    async fn found(&self, request: ProbeRequest, key: RecordId, rules: &Rules) -> Probed {
        let _in_flight = OneProbe::begin();
        let started_at = Instant::now();
        // Bounded here, and not by the wait for the store: a store that is away may mean "run", a slow probe never.
        let answer = timeout(self.timeout, (self.ask)(request)).await;
        let (key, took) = (key.short(), started_at.elapsed());
        if answer.is_err() {
            tracing::warn!(%key, timeout = ?self.timeout, "semel: a probe did not answer in time");
        }
        let found = answer.unwrap_or(ProbeAnswer::CannotTell).found(rules);
        let result = match &found {
            Probed::Landed(_) => "landed",
            Probed::NotLanded => "not_landed",
            Probed::CannotTell => "cannot_tell",
        };
        counter!(semel::metrics::PROBES.name, "result" => result).increment(1);
        histogram!(semel::metrics::PROBE_SECONDS.name).record(took);
        tracing::info!(%key, result, "semel: probed a run whose end was not known");
        found
    }
}

/// A probe in flight: the gauge counts it until it is dropped, also by a client that hangs up.
struct OneProbe;

impl OneProbe {
    fn begin() -> Self {
        gauge!(semel::metrics::PROBES_IN_FLIGHT.name).increment(1.0);
        Self
    }
}

impl Drop for OneProbe {
    fn drop(&mut self) {
        gauge!(semel::metrics::PROBES_IN_FLIGHT.name).decrement(1.0);
    }
}

impl ProbeAnswer {
    fn found(self, rules: &Rules) -> Probed {
        match self {
            Self::Landed(reply) if is_final(reply.status()) => Probed::Landed(kept(&reply, rules)),
            Self::NotLanded => Probed::NotLanded,
            Self::Landed(_) | Self::CannotTell => Probed::CannotTell,
        }
    }
}

/// The outcome of a response that a probe found: the bounds of a first response hold for it, too.
fn kept(reply: &Reply, rules: &Rules) -> Outcome {
    let body = Some(reply.body()).filter(|body| body.len() <= rules.response_bytes_max);
    outcome(reply.status(), reply.headers(), reply.trailers(), body, rules.headers_kept.as_deref())
}

fn is_final(status: StatusCode) -> bool {
    !status.is_informational()
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("timeout", &self.timeout)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}
