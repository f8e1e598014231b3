//! A load that goes on while its store vanishes and comes back, and a ledger of what it was told.
//!
//! Callers claim, complete and release, and write down every answer that they were given. Whatever the store went through
//! meanwhile, what it acknowledged must be there afterwards, no run may have been granted twice, and no key may be stuck.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> semel::Result<()> {
//! use std::{sync::Arc, time::Duration};
//! use semel::store::{MemoryStore, Store};
//! use semel_testkit::endurance::Endurance;
//!
//! let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
//! let load = Endurance::start(&store, 1, 8)?;
//! load.until_acknowledged(500, Duration::from_secs(10)).await;
//! // Here the server would be killed and started again, as often as you like.
//! let mut ledger = load.stop().await;
//! let losses = ledger.verify(&store).await?;
//! assert!(losses.are_none(), "{losses}");
//! # Ok(())
//! # }
//! ```
//!
//! - [`Endurance`]: the callers, from start to stop.
//! - [`Ledger`]: every answer that they were given, and how it is held against a store. [`Losses`]: what was found.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::record::{PermitId, Record, State};
use semel::store::Store;
use semel::{
    Claim, Decision, Error, ErrorKind, Key, Outcome, Permit, RecordId, ReleaseAnswer, Result, Semel,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::sample;

/// A lease that no load outlives: whoever takes over a run that was not released took it from somebody.
const LEASE: Duration = Duration::from_hours(12);
const RETENTION: Duration = Duration::from_hours(24);
/// How many callers share an engine, and with it their round trips.
const CALLERS_AN_ENGINE: usize = 4;

/// Callers at work. Dropped without [`stop`](Self::stop), they are gone, and so is what they know.
pub struct Endurance {
    callers: JoinSet<()>,
    book: Book,
    acknowledged: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
}

impl Endurance {
    /// Sets so many callers to work. What they ask comes from the seed; their keys are like no others.
    pub fn start(store: &Arc<dyn Store>, seed: u64, callers: usize) -> Result<Self> {
        Self::go_on(Ledger::default(), store, seed, callers)
    }

    /// The same, with a ledger that is already begun.
    pub fn go_on(ledger: Ledger, store: &Arc<dyn Store>, seed: u64, callers: usize) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (book, recent) = (Book::new(ledger), Recent::default());
        let mut at_work = JoinSet::new();
        let mut semel = engine(store)?;
        for number in 0..callers {
            if number.is_multiple_of(CALLERS_AN_ENGINE) {
                semel = engine(store)?;
            }
            let caller = Caller::new(semel.clone(), book.clone(), recent.clone(), seed, number)
                .heeding(stopped.clone())
                .counting(Arc::clone(&acknowledged));
            at_work.spawn(caller.live());
        }
        Ok(Self { callers: at_work, book, acknowledged, stop })
    }

    /// How many answers were acknowledged since the start.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until so many answers were acknowledged, or for as long as it has patience. Says whether they were.
    pub async fn until_acknowledged(&self, answers: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.acknowledged() < answers {
            if Instant::now() > until {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        true
    }

    /// Has every caller end what it is at, and hands over what they were told. A caller whose store does not answer gives
    /// up after its present try; what it asked for is in the ledger as something that may have happened.
    pub async fn stop(mut self) -> Ledger {
        self.stop.send_replace(true);
        while let Some(ended) = self.callers.join_next().await {
            // A caller that panicked knows things that nobody else does: without them the ledger means nothing.
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        self.book.close()
    }
}

/// An engine of the load, which remembers nothing by itself: every replay asks the store.
fn engine(store: &Arc<dyn Store>) -> Result<Semel> {
    Semel::builder_shared(Arc::clone(store)).lease(LEASE).retention(RETENTION).replays_kept(0, 0).build()
}

/// How many keys are asked for a second time, at most.
const RECENT_MAX: usize = 64;
/// How long to wait before a store that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// Keys that somebody asked for a moment ago.
#[derive(Clone, Default)]
struct Recent(Arc<Mutex<VecDeque<Key>>>);

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
struct Caller {
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
    fn new(semel: Semel, book: Book, recent: Recent, seed: u64, number: usize) -> Self {
        let stream = u64::try_from(number).unwrap_or(u64::MAX);
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(stream));
        let (_, stopped) = watch::channel(false);
        Self { semel, book, recent, rng, stopped, acknowledged: Arc::default() }
    }

    fn heeding(mut self, stopped: watch::Receiver<bool>) -> Self {
        self.stopped = stopped;
        self
    }

    fn counting(mut self, acknowledged: Arc<AtomicU64>) -> Self {
        self.acknowledged = acknowledged;
        self
    }

    async fn live(mut self) {
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
            let outcome = Outcome::success(self.rng.random::<[u8; 32]>().to_vec());
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

/// How many records are looked at in one round trip.
const LOADS_MAX: usize = 1_024;
/// How many keys are settled at the same time.
const SETTLES_MAX: usize = 64;

/// What all callers were told.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: HashMap<RecordId, Account>,
}

/// The ledger while callers write in it.
#[derive(Clone, Debug, Default)]
struct Book(Arc<Mutex<Ledger>>);

impl Book {
    fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Writes something down on the page of a key.
    fn note(&self, key: &Key, note: impl FnOnce(&mut Account)) {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        note(ledger.accounts.entry(key.id()).or_insert_with(|| Account::new(key)));
    }

    fn granted(&self, permit: &Permit) {
        let grant = Grant { permit_id: permit.id(), attempt: permit.attempt(), fence: permit.fence() };
        self.note(permit.key(), |account| {
            if !account.grants.contains(&grant) {
                account.grants.push(grant);
            }
        });
    }

    /// The ledger as it is, for when nobody writes in it any more.
    fn close(&self) -> Ledger {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ledger {
    /// How many grants, outcomes and releases were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.accounts.values().map(Account::acknowledged).sum()
    }

    /// How many keys were asked for.
    pub fn keys(&self) -> usize {
        self.accounts.len()
    }

    /// Holds what was acknowledged against what the store has. Then ends every run that is left and replays it, to see
    /// that no key is stuck; that is written down too, so the same ledger can be held against the store again.
    pub async fn verify(&mut self, store: &Arc<dyn Store>) -> Result<Losses> {
        let mut losses = Losses { acknowledged: self.acknowledged(), ..Losses::default() };
        let ids: Vec<_> = self.accounts.keys().copied().collect();
        let mut unsettled = Vec::new();
        for ids in ids.chunks(LOADS_MAX) {
            let found = store.load(ids.to_vec()).await?.records()?;
            for (id, found) in ids.iter().zip(found) {
                let Some(account) = self.accounts.get(id) else { continue };
                let findings = judge(account, found.as_ref());
                losses.add(&id.short().to_string(), &findings);
                if findings.is_empty() && found.as_ref().is_none_or(|record| record.outcome().is_none()) {
                    unsettled.push((account.key.clone(), found));
                }
            }
        }
        self.settle(store, unsettled, &mut losses).await?;
        Ok(losses)
    }

    async fn settle(
        &mut self,
        store: &Arc<dyn Store>,
        mut unsettled: Vec<(Key, Option<Record>)>,
        losses: &mut Losses,
    ) -> Result<()> {
        let (semel, book) = (engine(store)?, Book::new(std::mem::take(self)));
        let mut settling = JoinSet::new();
        loop {
            while let Some((key, found)) = unsettled.pop_if(|_| settling.len() < SETTLES_MAX) {
                let (semel, book) = (semel.clone(), book.clone());
                settling.spawn(async move { (key.id(), settle(&semel, &book, &key, found).await) });
            }
            match settling.join_next().await {
                None => break,
                Some(Ok((_, Ok(())))) => {}
                Some(Ok((id, Err(why)))) => losses.add(&id.short().to_string(), &[(Wrong::Wedged, why)]),
                Some(Err(error)) => losses.add("a settling task", &[(Wrong::Wedged, error.to_string())]),
            }
        }
        *self = book.close();
        Ok(())
    }
}

/// What came of a key that was settled; the error says why it is stuck.
type Settled = std::result::Result<(), String>;

/// Goes on with whatever run is there, or begins one, ends it, and has its outcome replayed.
async fn settle(semel: &Semel, book: &Book, key: &Key, found: Option<Record>) -> Settled {
    let claim = |permit_id: Option<PermitId>| {
        let claim = Claim::new(key);
        semel.claim(match permit_id {
            Some(permit_id) => claim.permit_id(permit_id),
            None => claim,
        })
    };
    let running = found.as_ref().and_then(|record| match &record.state {
        State::Running(running) => Some(running.grant.permit_id),
        State::Done(_) | State::Released(_) | State::Held(_) => None,
    });
    let permit = match claim(running).await {
        Ok(Decision::Run(permit)) => permit,
        other => return Err(format!("it cannot be claimed: {other:?}")),
    };
    book.granted(&permit);
    let outcome = Outcome::success("settled");
    let ending = (permit.id(), Ending::Done(outcome.clone()));
    book.note(key, |account| account.settling.push(ending.clone()));
    permit.complete(outcome.clone()).await.map_err(|error| format!("it cannot be completed: {error:?}"))?;
    book.note(key, |account| account.settled.push(ending));
    match claim(None).await {
        Ok(Decision::Replay(replay)) if *replay.outcome() == outcome => Ok(()),
        other => Err(format!("it does not replay its outcome: {other:?}")),
    }
}

/// What callers know of one key.
#[derive(Clone, Debug)]
struct Account {
    key: Key,
    /// The permits that somebody asked for and that may have been granted.
    asked: Vec<PermitId>,
    /// The grants that were heard.
    grants: Vec<Grant>,
    /// The ends that were asked for and may have taken.
    settling: Vec<(PermitId, Ending)>,
    /// The ends that were acknowledged.
    settled: Vec<(PermitId, Ending)>,
    /// The outcomes that were replayed.
    replayed: Vec<Outcome>,
    /// What nobody should have been told.
    odd: Vec<String>,
}

/// A grant that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    permit_id: PermitId,
    attempt: u32,
    fence: u64,
}

/// How a run was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    Done(Outcome),
    Released,
}

impl Account {
    fn new(key: &Key) -> Self {
        Self {
            key: key.clone(),
            asked: Vec::new(),
            grants: Vec::new(),
            settling: Vec::new(),
            settled: Vec::new(),
            replayed: Vec::new(),
            odd: Vec::new(),
        }
    }

    /// The outcomes that were acknowledged.
    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.settled.iter().filter_map(|(_, ending)| match ending {
            Ending::Done(outcome) => Some(outcome),
            Ending::Released => None,
        })
    }

    /// Whether somebody wanted to end that run like this.
    fn may_have_ended(&self, permit_id: PermitId, ending: &Ending) -> bool {
        self.settling.iter().any(|(of, how)| *of == permit_id && how == ending)
    }

    /// Whether that run is known to have ended like this.
    fn has_ended(&self, permit_id: PermitId, ending: &Ending) -> bool {
        self.settled.iter().any(|(of, how)| *of == permit_id && how == ending)
    }

    /// The last grant that was heard.
    fn last_grant(&self) -> Option<&Grant> {
        self.grants.iter().max_by_key(|grant| grant.attempt)
    }

    /// How many answers were acknowledged.
    fn acknowledged(&self) -> u64 {
        (self.grants.len() + self.settled.len()) as u64
    }
}

/// All that is wrong with a key.
fn judge(account: &Account, found: Option<&Record>) -> Vec<(Wrong, String)> {
    let mut wrong = Vec::new();
    wrong.extend(account.odd.iter().map(|what| (Wrong::Lost, what.clone())));
    grants(account, &mut wrong);
    outcomes(account, found, &mut wrong);
    if account.outcomes().next().is_none() {
        last_run(account, found, &mut wrong);
    }
    wrong
}

/// No two callers were told to run at the same time.
fn grants(account: &Account, wrong: &mut Vec<(Wrong, String)>) {
    let mut grants = account.grants.clone();
    grants.sort_by_key(|grant| (grant.attempt, grant.fence));
    for pair in grants.windows(2) {
        let [before, after] = pair else { continue };
        let what = if before.permit_id == after.permit_id {
            (before != after).then(|| format!("one permit has two runs: {before:?} and {after:?}"))
        } else if before.attempt == after.attempt {
            Some(format!("two callers were granted attempt {}", after.attempt))
        } else if before.fence >= after.fence {
            Some(format!("the fence went from {} to {}", before.fence, after.fence))
        } else if !account.may_have_ended(before.permit_id, &Ending::Released) {
            Some(format!("attempt {} was granted while {} held its lease", after.attempt, before.attempt))
        } else {
            None
        };
        wrong.extend(what.map(|what| (Wrong::Doubled, what)));
    }
}

/// What was acknowledged as the outcome, or replayed as one, is the outcome.
fn outcomes(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let stored = found.and_then(Record::outcome);
    for outcome in account.outcomes().chain(&account.replayed) {
        if stored != Some(outcome) {
            let state = found.map(|record| record.state.kind().as_str());
            wrong.push((Wrong::Lost, format!("an outcome that was told is gone: the record is {state:?}")));
        }
    }
}

/// What the last run that anybody heard of has come to.
fn last_run(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let Some(last) = account.last_grant() else { return unheard(account, found, wrong) };
    let what = match found {
        None => Some("a run was granted and there is no record".to_owned()),
        Some(record) if record.attempt < last.attempt => {
            Some(format!("attempt {} was granted and the record is at {}", last.attempt, record.attempt))
        }
        Some(record) if record.attempt > last.attempt => {
            if !account.may_have_ended(last.permit_id, &Ending::Released) {
                wrong.push((Wrong::Doubled, format!("a run came after attempt {} held", last.attempt)));
            }
            return unheard(account, found, wrong);
        }
        Some(record) => same_run(account, last, &record.state),
    };
    wrong.extend(what.map(|what| (Wrong::Lost, what)));
}

/// What is wrong with the state of the run that was granted.
fn same_run(account: &Account, last: &Grant, state: &State) -> Option<String> {
    let is_wrong = match state {
        State::Running(running) => {
            running.grant.permit_id != last.permit_id
                || running.grant.fence.get() != last.fence
                || account.has_ended(last.permit_id, &Ending::Released)
        }
        State::Done(done) => {
            done.grant.permit_id != last.permit_id
                || !account.may_have_ended(last.permit_id, &Ending::Done(done.outcome.clone()))
        }
        State::Released(_) => !account.may_have_ended(last.permit_id, &Ending::Released),
        State::Held(_) => true,
    };
    is_wrong.then(|| format!("attempt {} is {}, and nobody was told so", last.attempt, state.kind().as_str()))
}

/// A run that nobody heard of must be one that somebody asked for, who can ask for it again.
fn unheard(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let Some(record) = found else { return };
    let known = match &record.state {
        State::Running(running) => account.asked.contains(&running.grant.permit_id),
        State::Done(done) => {
            account.may_have_ended(done.grant.permit_id, &Ending::Done(done.outcome.clone()))
        }
        State::Released(_) => true,
        State::Held(_) => false,
    };
    if !known {
        let state = record.state.kind().as_str();
        wrong.push((Wrong::Wedged, format!("it is {state} under a permit that nobody has")));
    }
}

/// How many findings are told in words; the rest is counted.
const EXAMPLES_MAX: usize = 10;

/// What a store got wrong, counted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// How many grants, outcomes and releases were acknowledged in all.
    pub acknowledged: u64,
    /// Keys of which something was acknowledged that is no longer so.
    pub lost: u64,
    /// Keys that two callers were told to run at the same time.
    pub doubled: u64,
    /// Keys that nobody can claim, and that have no outcome either.
    pub wedged: u64,
    /// The first findings, in words for people.
    pub examples: Vec<String>,
}

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Lost,
    Doubled,
    Wedged,
}

impl Losses {
    /// Whether the store kept all that it had promised.
    pub fn are_none(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.wedged == 0
    }

    /// Counts what is wrong with one key, each kind once.
    fn add(&mut self, key: &str, findings: &[(Wrong, String)]) {
        let any = |kind: Wrong| u64::from(findings.iter().any(|(wrong, _)| *wrong == kind));
        self.lost += any(Wrong::Lost);
        self.doubled += any(Wrong::Doubled);
        self.wedged += any(Wrong::Wedged);
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        self.examples
            .extend(findings.iter().take(room).map(|(wrong, what)| format!("{key}: {wrong:?}: {what}")));
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, lost, doubled, wedged, examples } = self;
        write!(f, "{acknowledged} acknowledged: {lost} lost, {doubled} doubled, {wedged} wedged")?;
        examples.iter().try_for_each(|example| write!(f, "\n  {example}"))
    }
}
