//! One client of a store, as a process of its own would be: an engine, its connections, and callers that go on by themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use semel::record::PermitId;
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Permit, ReleaseAnswer, Semel};
use semel_ops::store_url::Address;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::shown::Shown;
use crate::crash::fault::Kind;
use crate::progress::Stopwatch;

/// Longer than any campaign: a second grant is never a lapse.
const LEASE: Duration = Duration::from_hours(24);
/// How long to wait before a server that gave no answer is asked again.
const PAUSE: Duration = Duration::from_millis(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// How long a client waits for its own callers at the end.
const STOP_WITHIN: Duration = Duration::from_millis(200);

/// A client with callers.
pub(super) struct Client {
    asker: Asker,
    runtime: Handle,
    callers: Vec<(Asker, JoinHandle<()>)>,
    is_stopped: Arc<AtomicBool>,
}

/// Asks, and notes what was shown and how long it took.
#[derive(Clone)]
struct Asker {
    name: String,
    semel: Semel,
    shown: Arc<Shown>,
    is_stopped: Arc<AtomicBool>,
    times: Arc<Mutex<Times>>,
}

/// What one caller waits for, and has had.
#[derive(Default)]
struct Times {
    /// When the ask that is under way began.
    asking: Option<Stopwatch>,
    /// When the last ask began that was answered.
    served: Option<Stopwatch>,
}

/// What a claim was answered with.
pub(super) enum Claimed {
    Run(Permit),
    Replayed,
    Busy,
}

impl Client {
    /// Connects to the store at this URL; one that needs a schema gets it.
    pub(super) async fn connect(name: &str, url: &str, shown: &Arc<Shown>) -> Result<Self> {
        let address: Address = url.parse()?;
        let connected = async {
            address.migrate().await?;
            address.open().await.map(|opened| opened.store())
        };
        let store = connected.await.with_context(|| format!("{name} cannot connect to {url}"))?;
        // Replays must come from the store: one from the engine's memory proves nothing.
        let semel = Semel::builder_shared(store).lease(LEASE).replays_kept(0, 0).no_sweep().build()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let asker = Asker {
            name: name.to_owned(),
            semel,
            shown: Arc::clone(shown),
            is_stopped: Arc::clone(&is_stopped),
            times: Arc::default(),
        };
        Ok(Self { asker, runtime: Handle::current(), callers: Vec::new(), is_stopped })
    }

    /// Adds callers that claim and complete one new key after the other.
    pub(super) fn complete_new_keys(&mut self, callers: usize) {
        for number in 0..callers {
            let asker = self.asker.caller(&format!("-{}", self.callers.len() + number));
            self.spawn(asker, |asker| async move {
                for number in 0_u64.. {
                    asker.complete_new_key(number).await;
                    if asker.is_stopped() {
                        return;
                    }
                }
            });
        }
    }

    /// Adds a caller for each of these keys, which claims and releases it over and over.
    pub(super) fn claim_and_release(&mut self, names: &[String]) {
        for name in names {
            let name = name.clone();
            let asker = self.asker.caller("");
            self.spawn(asker, |asker| async move { asker.claim_and_release(&name).await });
        }
    }

    fn spawn<F>(&mut self, asker: Asker, work: impl FnOnce(Asker) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = self.runtime.spawn(work(asker.clone()));
        self.callers.push((asker, task));
    }

    /// Claims a key once, without asking again.
    pub(super) async fn claim(&self, name: &str) -> semel::Result<Claimed> {
        self.asker.caller("").claim(name, PermitId::new(rand::random())).await
    }

    /// Claims keys of these names, which must be new: a permit for each.
    pub(super) async fn claim_new(&self, names: &[String]) -> Result<Vec<Permit>> {
        let mut permits = Vec::new();
        for name in names {
            let Claimed::Run(permit) = self.claim(name).await? else { bail!("{name} is not new") };
            permits.push(permit);
        }
        Ok(permits)
    }

    /// Completes a permit, once.
    pub(super) async fn complete(&self, permit: &Permit) -> semel::Result<()> {
        self.asker.caller("").complete(permit).await
    }

    /// Adds a caller for each of these permits, which completes it, however often it has to ask.
    pub(super) fn complete_permits(&mut self, permits: Vec<Permit>) {
        for permit in permits {
            let asker = self.asker.caller("");
            self.spawn(asker, |asker| async move {
                asker.until_answered(|| asker.complete(&permit)).await;
            });
        }
    }

    /// How many callers still have something to ask.
    pub(super) fn busy_callers(&self) -> usize {
        self.callers.iter().filter(|(_, task)| !task.is_finished()).count()
    }

    /// Claims a key: its outcome, if it has one. What a claim is granted here was lost.
    pub(super) async fn outcome(&self, name: &str) -> semel::Result<Option<Vec<u8>>> {
        let claim = Claim::new(&key(name)?).permit_id(PermitId::new(rand::random()));
        Ok(match self.asker.semel.claim(claim).await? {
            Decision::Replay(replay) => Some(replay.outcome().bytes().to_vec()),
            Decision::Run(_)
            | Decision::Busy(_)
            | Decision::Mismatch(_)
            | Decision::Held(_)
            | Decision::Unprotected(_) => None,
        })
    }

    /// Whether a record of this key is there.
    pub(super) async fn is_there(&self, name: &str) -> semel::Result<bool> {
        let found = self.asker.semel.get(&key(name)?).await;
        Ok(found?.is_some())
    }

    /// Waits until every caller has had an answer to an ask that began after this moment, for so long at most. How long
    /// after it that was, if it was.
    pub(super) fn until_served(&self, since: Stopwatch, patience: Duration) -> Option<Duration> {
        loop {
            let is_after = |served: Stopwatch| served.elapsed() < since.elapsed();
            let is_served = |asker: &Asker| asker.times().served.is_some_and(is_after);
            if self.callers.iter().all(|(asker, task)| task.is_finished() || is_served(asker)) {
                return Some(since.elapsed());
            }
            if since.elapsed() > patience {
                return None;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Notes how long the asks are under way that have had no answer yet.
    pub(super) fn note_asks_under_way(&self) {
        for (asker, _) in &self.callers {
            if let Some(began) = asker.times().asking {
                asker.shown.took(began.elapsed());
            }
        }
    }

    /// Ends all callers, wherever they are: what they were not shown by now they never are.
    pub(super) async fn stop(self) {
        self.note_asks_under_way();
        self.is_stopped.store(true, Ordering::SeqCst);
        let aborts: Vec<_> = self.callers.iter().map(|(_, task)| task.abort_handle()).collect();
        let tasks = self.callers.into_iter().map(|(_, task)| task);
        drop(tokio::time::timeout(STOP_WITHIN, join_all(tasks)).await);
        for abort in aborts {
            abort.abort();
        }
    }
}

impl Asker {
    /// For one caller, whose keys have names of their own.
    fn caller(&self, suffix: &str) -> Self {
        Self { name: format!("{}{suffix}", self.name), times: Arc::default(), ..self.clone() }
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    async fn complete_new_key(&self, number: u64) {
        let (name, permit_id) = (format!("{}-{number}", self.name), PermitId::new(rand::random()));
        let claimed = self.until_answered(|| self.claim(&name, permit_id)).await;
        let Some(Claimed::Run(permit)) = claimed else { return };
        self.until_answered(|| self.complete(&permit)).await;
    }

    async fn claim_and_release(&self, name: &str) {
        let mut before = 0;
        while !self.is_stopped() {
            let permit_id = PermitId::new(rand::random());
            let claimed = self.until_answered(|| self.claim(name, permit_id)).await;
            let Some(Claimed::Run(permit)) = claimed else { continue };
            self.shown.granted_again(name, before, permit.fence());
            before = permit.fence();
            self.until_answered(|| self.release(&permit)).await;
        }
    }

    /// Asks until there is an answer that says what happened.
    async fn until_answered<T, F>(&self, mut ask: impl FnMut() -> F) -> Option<T>
    where
        F: Future<Output = semel::Result<T>>,
    {
        while !self.is_stopped() {
            match ask().await {
                Ok(value) => return Some(value),
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {}
                // It was said by then, and is no reason to stop asking for other keys.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    return None;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    async fn claim(&self, name: &str, permit_id: PermitId) -> semel::Result<Claimed> {
        let key = key(name)?;
        let decision = self.timed("claim", self.semel.claim(Claim::new(&key).permit_id(permit_id))).await?;
        Ok(match decision {
            Decision::Run(permit) => {
                self.shown.granted(name, permit_id, permit.fence());
                Claimed::Run(permit)
            }
            Decision::Replay(replay) => {
                self.shown.outcome(name, replay.outcome().bytes());
                Claimed::Replayed
            }
            Decision::Busy(_) => Claimed::Busy,
            other @ (Decision::Mismatch(_) | Decision::Held(_) | Decision::Unprotected(_)) => {
                self.shown.fault(Kind::Wrong, format!("{name} was answered with {}", other.as_str()));
                Claimed::Busy
            }
        })
    }

    async fn complete(&self, permit: &Permit) -> semel::Result<()> {
        let (name, outcome) = (permit.key().name(), outcome_of(permit));
        self.timed("complete", permit.complete(Outcome::success(outcome.clone()))).await?;
        self.shown.outcome(name, &outcome);
        Ok(())
    }

    async fn release(&self, permit: &Permit) -> semel::Result<ReleaseAnswer> {
        let released = self.timed("release", permit.release("again")).await?;
        self.shown.acknowledged();
        Ok(released)
    }

    async fn timed<T>(&self, what: &str, ask: impl Future<Output = semel::Result<T>>) -> semel::Result<T> {
        let began = Stopwatch::start();
        self.times().asking = Some(began);
        let answer = ask.await;
        self.times().asking = None;
        self.shown.took(began.elapsed());
        match &answer {
            Ok(_) => self.times().served = Some(began),
            Err(error) => self.shown.failed(what, error),
        }
        answer
    }
}

fn key(name: &str) -> semel::Result<Key> {
    Key::new("crash", name)
}

/// An outcome that follows from its permit: another run would have another one.
fn outcome_of(permit: &Permit) -> Vec<u8> {
    format!("{} {:x}", permit.key().name(), permit.id().get()).into_bytes()
}
