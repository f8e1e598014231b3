//! How many records are in which state, found out in the background, for each scope that somebody may ask for.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
use semel::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::access::Tokens;
use semel_ops::lookup::Counted;
use semel_ops::lookup::walk::Walk;

/// The shortest pause between two walks.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// How many times the length of a walk the pause after it is: walks take a tenth of the time at most.
const PAUSE_FACTOR: u32 = 9;
/// The pause that is left if somebody wants to see what they changed.
const SOON: Duration = Duration::from_millis(200);
/// Nobody has looked for so long: nobody looks, and walks would be for nothing.
const UNSEEN_MAX: Duration = Duration::from_mins(1);
/// How long a page of a walk may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many of the oldest are remembered for each scope.
const OLDEST_MAX: usize = 50;
/// How many scopes are counted at most. Tokens are written by people: there are never so many.
const SCOPES_MAX: usize = 4_096;

/// Walks through the store now and then, while somebody looks, and remembers what it counted for each scope that
/// somebody may ask for.
///
/// A store that does not answer leaves the last count as it is, with its age.
#[derive(Debug, Default)]
pub struct Census {
    shared: Arc<Shared>,
    /// Ends when it is dropped.
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    latest: RwLock<ByScope<Arc<Counted>>>,
    /// Why the last walk came to no end.
    trouble: RwLock<Option<String>>,
    /// When the last walk came to its end.
    counted_at: RwLock<Option<Instant>>,
    /// How many walks came to their end.
    walks: watch::Sender<u64>,
    looked_at: watch::Sender<Instant>,
    soon: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            latest: RwLock::default(),
            trouble: RwLock::default(),
            counted_at: RwLock::default(),
            walks: watch::Sender::new(0),
            looked_at: watch::Sender::new(Instant::now()),
            soon: Notify::new(),
        }
    }
}

impl Census {
    /// Walks through this store from now on, until it is dropped. Counts everything, and what each of these tokens reaches.
    pub fn start(store: Arc<dyn Store>, tokens: &Tokens) -> Self {
        let shared = Arc::<Shared>::default();
        let mut latest = ByScope::default();
        latest.want(&[]);
        for caller in tokens.callers() {
            latest.want(caller.scope());
        }
        *write(&shared.latest) = latest;
        let task = walk_on(store, Arc::clone(&shared));
        Self { shared, _task: JoinSet::from_iter([task]) }
    }

    /// What the last walk counted within this scope. A scope that no caller has is counted from the next walk on.
    pub fn latest(&self, scope: &[Box<str>]) -> Arc<Counted> {
        self.shared.looked_at.send_replace(Instant::now());
        let found = read(&self.shared.latest).get(scope).cloned();
        found.unwrap_or_else(|| {
            write(&self.shared.latest).want(scope);
            Arc::default()
        })
    }

    /// How long ago the last walk ended that counted everything; `None` before the first.
    pub fn age(&self) -> Option<Duration> {
        read(&self.shared.counted_at).map(|at| at.elapsed())
    }

    /// Why the last walk came to no end, if it did not: the counts are older than they should be.
    pub fn trouble(&self) -> Option<String> {
        read(&self.shared.trouble).clone()
    }

    /// How many walks have ended, now and from now on.
    pub fn walks(&self) -> watch::Receiver<u64> {
        self.shared.walks.subscribe()
    }

    /// Something changed that people will want to see: walk soon.
    pub fn look_soon(&self) {
        self.shared.looked_at.send_replace(Instant::now());
        self.shared.soon.notify_one();
    }
}

/// When the next walk may begin, so that walks take a tenth of the time at most, however often one is wanted soon.
#[derive(Debug)]
struct Pacing {
    /// All walks so far are paid for by then.
    rested_at: Instant,
    /// Whether the last walk began before that.
    was_early: bool,
}

impl Pacing {
    fn new(now: Instant) -> Self {
        Self { rested_at: now, was_early: false }
    }

    /// Accounts for a walk.
    fn walked(&mut self, started_at: Instant, ended_at: Instant) {
        self.was_early = started_at < self.rested_at;
        let pause =
            ended_at.saturating_duration_since(started_at).saturating_mul(PAUSE_FACTOR).max(PAUSE_MIN);
        // What an early walk left of the pause before it is added to its own.
        let owed = self.rested_at.saturating_duration_since(started_at);
        self.rested_at = ended_at.checked_add(pause.saturating_add(owed)).unwrap_or(ended_at);
    }

    /// Waits until the next walk may begin: after the pause, or soon if that is wanted, but not twice in a row.
    async fn rest(&self, soon: &Notify) {
        let pause = sleep_until(self.rested_at);
        if self.was_early {
            return pause.await;
        }
        tokio::select! {
            () = pause => {}
            () = soon.notified() => sleep(SOON).await,
        }
    }
}

async fn walk_on(store: Arc<dyn Store>, shared: Arc<Shared>) {
    let mut pacing = Pacing::new(Instant::now());
    loop {
        let started_at = Instant::now();
        let trouble = match walk(&*store, &shared).await {
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        *write(&shared.trouble) = trouble;
        shared.walks.send_modify(|walks| *walks = walks.saturating_add(1));
        pacing.walked(started_at, Instant::now());
        pacing.rest(&shared.soon).await;
        somebody_looks(&shared).await;
    }
}

/// Waits while nobody has looked for long.
async fn somebody_looks(shared: &Shared) {
    let mut looked_at = shared.looked_at.subscribe();
    while looked_at.borrow_and_update().elapsed() > UNSEEN_MAX {
        if looked_at.changed().await.is_err() {
            return;
        }
    }
}

/// Counts everything there is, a page at a time: what is in memory is one page and the counts.
async fn walk(store: &dyn Store, shared: &Shared) -> Result<()> {
    let started_at = Instant::now();
    let mut counts = read(&shared.latest).emptied();
    let (mut walk, mut past, mut damaged) = (Walk::new(store, Filter::default(), None), 0_u64, 0_u64);
    let mut as_of = None;
    while let Some(page) = timeout(PAGE_TIMEOUT, walk.next()).await.map_err(|_| no_answer())?? {
        past = past.saturating_add(page.past as u64);
        damaged = damaged.saturating_add(page.damaged.len() as u64);
        as_of = Some(page.now);
        for record in &page.records {
            counts.add(record, page.now);
        }
        // On a store in memory, a walk never waits: without this, nobody else's turn would come.
        tokio::task::yield_now().await;
    }
    let took = started_at.elapsed();
    let finished = counts.map(|is_all, mut counted| {
        (counted.past, counted.damaged) = if is_all { (past, damaged) } else { (0, 0) };
        (counted.as_of, counted.took) = (as_of, took);
        Arc::new(counted)
    });
    write(&shared.latest).replace(finished);
    *write(&shared.counted_at) = Some(Instant::now());
    Ok(())
}

fn no_answer() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("the store gave no answer within {PAGE_TIMEOUT:?}; see whether it runs"),
    )
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Something for each scope that was asked for. A record finds those that it belongs to in as many looks as its own scope
/// has parts, however many there are.
#[derive(Debug)]
struct ByScope<T> {
    wanted: HashMap<Vec<Box<str>>, T>,
    /// Parts of the longest scope: what is deeper in a record's is not looked for.
    depth: usize,
}

impl<T> Default for ByScope<T> {
    fn default() -> Self {
        Self { wanted: HashMap::new(), depth: 0 }
    }
}

impl<T> ByScope<T> {
    /// What there is for this scope.
    fn get(&self, scope: &[Box<str>]) -> Option<&T> {
        self.wanted.get(scope)
    }

    /// The same scopes, with nothing counted.
    fn emptied(&self) -> ByScope<Counted> {
        let wanted = self.wanted.keys().map(|scope| (scope.clone(), Counted::default())).collect();
        ByScope { wanted, depth: self.depth }
    }

    /// The same scopes with something else for each; told whether it is the one of everything.
    fn map<U>(self, each: impl Fn(bool, T) -> U) -> ByScope<U> {
        let each = |(scope, here): (Vec<_>, T)| {
            let is_all = scope.is_empty();
            (scope, each(is_all, here))
        };
        ByScope { wanted: self.wanted.into_iter().map(each).collect(), depth: self.depth }
    }
}

impl<T: Default> ByScope<T> {
    /// From now on there is something for this scope, unless there are too many.
    fn want(&mut self, scope: &[Box<str>]) {
        if self.wanted.len() < SCOPES_MAX {
            self.wanted.entry(scope.to_vec()).or_default();
            self.depth = self.depth.max(scope.len());
        }
    }

    /// Takes over what was found out meanwhile; keeps scopes that were wanted meanwhile.
    fn replace(&mut self, found: Self) {
        for scope in std::mem::replace(self, found).wanted.keys() {
            self.want(scope);
        }
    }
}

impl ByScope<Counted> {
    /// Counts a record for each scope that it belongs to.
    fn add(&mut self, record: &Arc<Record>, now: Timestamp) {
        let mut scope: Vec<Box<str>> = record.key.scope().take(self.depth).map(Into::into).collect();
        loop {
            if let Some(counted) = self.wanted.get_mut(&scope) {
                counted.add(record, now, OLDEST_MAX);
            }
            if scope.pop().is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(parts: &[&str]) -> Vec<Box<str>> {
        parts.iter().map(|part| (*part).into()).collect()
    }

    /// How much of the time walks of this length take, if one is wanted soon all the time.
    async fn share_of_walks(length: Duration) -> f64 {
        let began_at = Instant::now();
        let (soon, mut pacing) = (Notify::new(), Pacing::new(began_at));
        let mut walking = Duration::ZERO;
        for _ in 0..100 {
            let started_at = Instant::now();
            tokio::time::advance(length).await;
            walking = walking.saturating_add(length);
            pacing.walked(started_at, Instant::now());
            soon.notify_one();
            pacing.rest(&soon).await;
        }
        // The last pause may have been cut short: what is owed belongs to it.
        sleep_until(pacing.rested_at).await;
        walking.as_secs_f64() / began_at.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn walks_take_a_tenth_of_the_time_at_most_also_if_one_is_always_wanted_soon() {
        for millis in [1, 300, 5_000, 60_000] {
            let share = share_of_walks(Duration::from_millis(millis)).await;
            assert!(share <= 0.1, "walks of {millis} ms take {share} of the time");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_walk_that_is_wanted_begins_soon_unless_the_last_one_did_too() {
        let (soon, mut pacing) = (Notify::new(), Pacing::new(Instant::now()));
        let started_at = Instant::now();
        tokio::time::advance(Duration::from_secs(5)).await;
        pacing.walked(started_at, Instant::now());
        let ended_at = Instant::now();
        soon.notify_one();
        pacing.rest(&soon).await;
        assert!(ended_at.elapsed() < Duration::from_secs(1));
        pacing.walked(Instant::now(), Instant::now());
        soon.notify_one();
        pacing.rest(&soon).await;
        assert!(ended_at.elapsed() > Duration::from_secs(45));
    }

    #[test]
    fn only_what_was_wanted_is_there() {
        let mut tree = ByScope::<u8>::default();
        tree.want(&scope(&["acme", "eu"]));
        assert_eq!(tree.get(&scope(&["acme", "eu"])), Some(&0));
        assert_eq!(tree.get(&scope(&["acme"])), None);
        assert_eq!(tree.get(&[]), None);
    }

    #[test]
    fn a_scope_that_was_wanted_during_a_walk_is_not_forgotten_by_it() {
        let mut tree = ByScope::<u8>::default();
        tree.want(&scope(&["acme"]));
        let walked = tree.emptied().map(|_, _| 7);
        tree.want(&scope(&["zeta", "eu"]));
        tree.replace(walked);
        assert_eq!((tree.get(&scope(&["acme"])), tree.get(&scope(&["zeta", "eu"]))), (Some(&7), Some(&0)));
    }

    #[test]
    fn there_are_never_more_scopes_than_the_bound() {
        let mut tree = ByScope::<u8>::default();
        for number in 0..=SCOPES_MAX {
            tree.want(&[number.to_string().into()]);
        }
        assert_eq!((tree.wanted.len(), tree.get(&[SCOPES_MAX.to_string().into()])), (SCOPES_MAX, None));
    }
}
