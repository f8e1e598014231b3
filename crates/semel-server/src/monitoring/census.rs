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
use tokio::time::{Instant, sleep, timeout};

use crate::access::Tokens;
use semel_ops::lookup::Counted;
use semel_ops::lookup::walk::Walk;

/// The shortest pause between two walks.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// How many times the length of a walk the pause after it is: so much of the store's time is left to others.
const PAUSE_FACTOR: u32 = 3;
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

async fn walk_on(store: Arc<dyn Store>, shared: Arc<Shared>) {
    loop {
        let started_at = Instant::now();
        let trouble = match walk(&*store, &shared).await {
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        *write(&shared.trouble) = trouble;
        shared.walks.send_modify(|walks| *walks = walks.saturating_add(1));
        let pause = started_at.elapsed().saturating_mul(PAUSE_FACTOR).max(PAUSE_MIN);
        tokio::select! {
            () = sleep(pause) => {}
            () = shared.soon.notified() => sleep(SOON).await,
        }
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
