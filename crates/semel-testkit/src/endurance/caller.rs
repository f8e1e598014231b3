//! What one caller of the load does, and writes down.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::record::PermitId;
use semel::{Claim, Decision, Error, ErrorKind, Key, Outcome, Permit, ReleaseAnswer, Result, Semel};
use tokio::sync::watch;

use super::account::{Account, Ending};
use super::ledger::Book;
use crate::sample;

/// How many keys are asked for a second time, at most.
const RECENT_MAX: usize = 64;
/// How long to wait before a store that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// Keys that somebody asked for a moment ago.
#[derive(Clone, Default)]
pub(super) struct Recent(Arc<Mutex<VecDeque<Key>>>);

impl Recent {
    fn add(&self, key: &Key) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push_back(key.clone());
        if keys.len() > RECENT_MAX {
            keys.pop_front();
        }
    }

    fn pick(&self, rng: &mut StdRng) -> Option<Key> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = rng.random_range(0..keys.len().max(1));
        keys.get(at).cloned()
    }
}

/// One caller.
pub(super) struct Caller {
    semel: Semel,
    book: Book,
    recent: Recent,
    rng: StdRng,
    stopped: watch::Receiver<bool>,
    acknowledged: Arc<AtomicU64>,
}

/// What came of asking until there was an answer.
enum Heard<T> {
    Answer(T),
    /// The store says that nothing happened, and there was no earlier try that could have.
    Nothing,
    /// The load is over, and nobody knows.
    Never,
}

impl Caller {
    pub(super) fn new(semel: Semel, book: Book, recent: Recent, seed: u64, number: usize) -> Self {
        let stream = u64::try_from(number).unwrap_or(u64::MAX);
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(stream));
        let (_, stopped) = watch::channel(false);
        Self { semel, book, recent, rng, stopped, acknowledged: Arc::default() }
    }

    pub(super) fn heeding(mut self, stopped: watch::Receiver<bool>) -> Self {
        self.stopped = stopped;
        self
    }

    pub(super) fn counting(mut self, acknowledged: Arc<AtomicU64>) -> Self {
        self.acknowledged = acknowledged;
        self
    }

    pub(super) async fn live(mut self) {
        while !*self.stopped.borrow() {
            let Some(key) = self.choose() else { return };
            self.turn(&key).await;
            // A store in this process answers at once; the others must get a turn all the same.
            tokio::task::yield_now().await;
        }
    }

    /// A new key, or in one of ten cases one that was asked for before.
    fn choose(&mut self) -> Option<Key> {
        let again = if self.happens(1, 10) { self.recent.pick(&mut self.rng) } else { None };
        again.or_else(|| {
            let key = sample::key("endurance").ok()?;
            self.recent.add(&key);
            Some(key)
        })
    }

    async fn turn(&mut self, key: &Key) {
        let permit_id = PermitId::new(self.rng.random());
        self.book.note(key, |account| account.asked.push(permit_id));
        let semel = self.semel.clone();
        match self.insist(key, || semel.claim(Claim::new(key).permit_id(permit_id))).await {
            Heard::Answer(Decision::Run(permit)) => {
                self.book.granted(&permit);
                self.count();
                self.run(&permit).await;
            }
            Heard::Answer(Decision::Replay(replay)) => {
                self.withdraw(key, permit_id);
                self.book.note(key, |account| remember(account, replay.outcome()));
            }
            Heard::Answer(Decision::Busy(_)) | Heard::Nothing => self.withdraw(key, permit_id),
            Heard::Answer(other) => self.odd(key, format!("a claim was told {other:?}")),
            Heard::Never => {}
        }
    }

    /// Some runs are left as they are: they must be found as they were granted.
    async fn run(&mut self, permit: &Permit) {
        match self.rng.random_range(0..20) {
            0 => {}
            1 | 2 => self.release(permit).await,
            _ => self.complete(permit).await,
        }
    }

    async fn complete(&mut self, permit: &Permit) {
        loop {
            let outcome = Outcome::success(self.rng.random::<[u8; 32]>());
            let ending = (permit.id(), Ending::Done(outcome.clone()));
            self.book.note(permit.key(), |account| account.settling.push(ending.clone()));
            match self.insist(permit.key(), || permit.complete(outcome.clone())).await {
                Heard::Answer(()) => {
                    self.book.note(permit.key(), |account| account.settled.push(ending));
                    return self.count();
                }
                // Nothing happened, says the store; so it may as well become another outcome.
                Heard::Nothing => {
                    self.book.note(permit.key(), |account| account.settling.retain(|known| *known != ending));
                }
                Heard::Never => return,
            }
        }
    }

    async fn release(&mut self, permit: &Permit) {
        let ending = (permit.id(), Ending::Released);
        self.book.note(permit.key(), |account| account.settling.push(ending.clone()));
        match self.insist(permit.key(), || permit.release("another may run")).await {
            Heard::Answer(ReleaseAnswer::Released) => {
                self.book.note(permit.key(), |account| account.settled.push(ending));
                self.count();
            }
            // Released by an earlier try whose reply was lost.
            Heard::Answer(ReleaseAnswer::NotHolding) | Heard::Never => {}
            Heard::Nothing => {
                self.book.note(permit.key(), |account| account.settling.retain(|known| *known != ending));
            }
        }
    }

    /// Asks until there is an answer, or until the load is over. What may have happened is asked for again, as it was;
    /// what the store says did not happen is not.
    async fn insist<T, F>(&mut self, key: &Key, mut ask: impl FnMut() -> F) -> Heard<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut in_doubt = false;
        loop {
            match ask().await {
                Ok(answer) => return Heard::Answer(answer),
                Err(error) if error.kind() == ErrorKind::Unknown => in_doubt = true,
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => {
                    self.odd(key, told(&error));
                    return Heard::Never;
                }
            }
            if *self.stopped.borrow() {
                return if in_doubt { Heard::Never } else { Heard::Nothing };
            }
            tokio::time::sleep(PAUSE).await;
            if !in_doubt {
                return Heard::Nothing;
            }
        }
    }

    fn withdraw(&self, key: &Key, permit_id: PermitId) {
        self.book.note(key, |account| account.asked.retain(|asked| *asked != permit_id));
    }

    fn odd(&self, key: &Key, what: String) {
        self.book.note(key, |account| account.odd.push(what));
    }

    fn count(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.rng.random_ratio(times, of)
    }
}

fn remember(account: &mut Account, outcome: &Outcome) {
    if !account.replayed.contains(outcome) {
        account.replayed.push(outcome.clone());
    }
}

/// A permit whose lease holds cannot be lost, and no other error should come of a store that is only away at times.
fn told(error: &Error) -> String {
    format!("a caller was told {error:?}")
}
