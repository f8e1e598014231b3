//! Whether the store takes claims, and whether the settings of its server keep the promise: found out in the background.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::store::Finding;
use semel::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use semel_ops::store_url::{NotReady, Opened};

/// How long the store may take to answer a probe before it counts as not ready, and how long the answer of a probe stands:
/// however often it is asked for, there is at most one probe a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a probe or a check may take before it is given up. There is one of each at a time.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Checks the settings of the store's server, and probes whether it takes claims, until it is dropped.
#[derive(Debug)]
pub struct StoreHealth {
    shared: Arc<Shared>,
    /// Ends when it is dropped.
    _tasks: JoinSet<()>,
}

struct Shared {
    store: Arc<Opened>,
    probed: watch::Sender<Probed>,
    probe_wanted: Notify,
    /// What the last line in the log said.
    logged: Mutex<Option<NotReady>>,
}

/// What the last probe found.
#[derive(Clone, Copy, Debug, Default)]
struct Probed {
    ended_at: Option<Instant>,
    not_ready: Option<NotReady>,
}

impl Probed {
    fn is_fresh(&self) -> bool {
        self.ended_at.is_some_and(|at| at.elapsed() < PROBE_TIMEOUT)
    }
}

impl StoreHealth {
    /// How often the settings are checked, and the store is probed without a request: a change is noticed within a minute.
    pub const CHECK_EVERY: Duration = Duration::from_secs(20);

    /// Checks and probes this store from now on, once in `check_every`.
    pub fn start(store: Arc<Opened>, check_every: Duration) -> Self {
        let shared = Arc::new(Shared {
            store,
            probed: watch::Sender::default(),
            probe_wanted: Notify::new(),
            logged: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(check_on(Arc::clone(&shared), check_every));
        tasks.spawn(probe_on(Arc::clone(&shared), check_every));
        Self { shared, _tasks: tasks }
    }

    /// How the store is, by what was found last. The next probe is made soon.
    pub fn latest(&self) -> StoreStatus {
        if !self.shared.probed.borrow().is_fresh() {
            self.shared.probe_wanted.notify_one();
        }
        self.shared.status()
    }

    /// How the store is, by a probe of less than a second ago; waits for one for a second at most.
    pub async fn now(&self) -> StoreStatus {
        let mut probed = self.shared.probed.subscribe();
        if !probed.borrow().is_fresh() {
            self.shared.probe_wanted.notify_one();
            let waited = timeout(PROBE_TIMEOUT, probed.wait_for(Probed::is_fresh)).await;
            if waited.is_err() {
                return self.shared.status_if(Some(NotReady::NoAnswer));
            }
        }
        self.shared.status()
    }
}

/// How a store is.
#[derive(Clone, Debug)]
pub struct StoreStatus {
    /// Why it takes no new claims; `None` if it does.
    pub not_ready: Option<NotReady>,
    /// The settings of its server that break the promise.
    pub broken_settings: Arc<[Finding]>,
}

impl StoreStatus {
    /// Whether it takes claims and keeps its promise.
    pub fn is_fine(&self) -> bool {
        self.not_ready.is_none() && self.broken_settings.is_empty()
    }
}

/// What is wrong, in words for the public: no address, and no message of a server.
impl fmt::Display for StoreStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = named(&self.broken_settings);
        match self.not_ready {
            Some(NotReady::Refused) if !settings.is_empty() => {
                write!(f, "{settings} on the server; new claims are refused")
            }
            Some(cause) => write!(f, "{cause}"),
            None if settings.is_empty() => f.write_str("it takes claims"),
            None => write!(f, "{settings}; what is acknowledged could be lost"),
        }
    }
}

/// The settings and what was found, each once: on the masters of a cluster they may be the same.
fn named(broken: &[Finding]) -> String {
    let mut parts = Vec::new();
    for Finding { setting, found, .. } in broken {
        // `appendfsync at HOST:PORT`: the address is not for the public.
        let setting = setting.split(" at ").next().unwrap_or_default();
        let part = format!("{setting} is {}", found.as_deref().unwrap_or("not readable"));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", ")
}

impl Shared {
    fn status(&self) -> StoreStatus {
        self.status_if(self.probed.borrow().not_ready)
    }

    /// The status if a probe found this.
    fn status_if(&self, probed: Option<NotReady>) -> StoreStatus {
        // What a probe found goes first, unless the store answered it: a standby is better called read-only.
        let not_ready = match probed {
            None | Some(NotReady::Failed) if self.store.refuses_claims() => Some(NotReady::Refused),
            found => found,
        };
        StoreStatus { not_ready, broken_settings: self.store.broken_settings() }
    }

    fn publish(&self, probed: &Result<()>) {
        let not_ready = probed.as_ref().err().map(NotReady::of);
        self.probed.send_replace(Probed { ended_at: Some(Instant::now()), not_ready });
        self.show(probed.as_ref().err());
    }

    /// Sets the gauge, and logs what changed. A setting that broke or was mended is in the log already.
    fn show(&self, error: Option<&Error>) {
        let StoreStatus { not_ready, .. } = self.status();
        metrics::gauge!(semel::metrics::STORE_READY.name).set(if not_ready.is_none() { 1.0 } else { 0.0 });
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *logged, not_ready);
        match (before, not_ready) {
            (before, now) if before == now => {}
            (_, Some(NotReady::Refused)) | (Some(NotReady::Refused), None) => {}
            (_, Some(cause)) => {
                let error = error.map(tracing::field::display);
                tracing::warn!(error, "semel: the store is not ready: {cause}");
            }
            (_, None) => tracing::warn!("semel: the store is ready again"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("probed", &*self.probed.borrow()).finish_non_exhaustive()
    }
}

/// Checks the settings now and then. A check that fails changes nothing: whether the store answers is the probe's matter.
async fn check_on(shared: Arc<Shared>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match timeout(GIVE_UP_AFTER, shared.store.check()).await {
            // The store, or what opened it, keeps what was found.
            Ok(Ok(_)) => shared.show(None),
            Ok(Err(error)) => {
                tracing::debug!(%error, "semel: the settings of the store could not be checked");
            }
            Err(_) => tracing::debug!("semel: the settings of the store were not checked in time"),
        }
    }
}

/// Probes the store now and then, and when it is asked for: one probe at a time, and at most one a second.
async fn probe_on(shared: Arc<Shared>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.probe_wanted.notified() => {}
        }
        let began_at = Instant::now();
        probe(&shared).await;
        if let Some(next) = began_at.checked_add(PROBE_TIMEOUT) {
            sleep_until(next).await;
        }
    }
}

async fn probe(shared: &Shared) {
    let mut probe = pin!(timeout(GIVE_UP_AFTER, shared.store.ready()));
    if let Ok(in_time) = timeout(PROBE_TIMEOUT, &mut probe).await {
        shared.publish(&in_time.unwrap_or_else(|_| Err(no_answer())));
        return;
    }
    shared.publish(&Err(no_answer()));
    // It is not cut off, so that probes of a store that hangs do not pile up; its error may say more.
    let late = probe.await;
    shared.publish(&late.ok().filter(Result::is_err).unwrap_or_else(|| Err(no_answer())));
}

fn no_answer() -> Error {
    let message = format!("the store gave no answer within {PROBE_TIMEOUT:?}; see whether its server runs");
    Error::new(ErrorKind::Unavailable, message).overdue()
}

#[cfg(test)]
mod tests {
    use semel::store::Verdict;

    use super::*;

    fn broken(setting: &str, found: &str) -> Finding {
        Finding {
            setting: setting.into(),
            found: Some(found.into()),
            wanted: "on".into(),
            verdict: Verdict::Broken,
        }
    }

    fn said(not_ready: Option<NotReady>, broken: &[Finding]) -> String {
        StoreStatus { not_ready, broken_settings: broken.into() }.to_string()
    }

    #[test]
    fn what_is_wrong_is_said_without_the_address_of_a_server() {
        let broken = [
            broken("maxmemory-policy at 10.0.0.1:6379", "allkeys-lru"),
            broken("maxmemory-policy at 10.0.0.2:6379", "allkeys-lru"),
        ];
        let refused = said(Some(NotReady::Refused), &broken);
        assert_eq!(refused, "maxmemory-policy is allkeys-lru on the server; new claims are refused");
        let lossy = said(None, &broken);
        assert_eq!(lossy, "maxmemory-policy is allkeys-lru; what is acknowledged could be lost");
        assert!(said(Some(NotReady::ReadOnly), &broken).starts_with("it is read-only"));
    }

    #[test]
    fn a_refusal_by_a_store_that_names_no_setting_is_said_all_the_same() {
        assert!(said(Some(NotReady::Refused), &[]).ends_with("new claims are refused"));
    }
}
