//! How many records are in which state, found out in the background.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use semel::store::{Filter, Store};
use semel::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::by_scope::ByScope;
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

/// Walks through the store now and then, while somebody looks, and remembers what it counted for each scope that
/// somebody may ask for.
///
/// A store that does not answer leaves the last count as it is, with its age.
#[derive(Debug, Default)]
pub struct Census {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
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
        let task = tokio::spawn(walk_on(store, Arc::clone(&shared)));
        Self { shared, task: Some(task) }
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

impl Drop for Census {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
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
    let (mut walk, mut past, mut as_of) = (Walk::new(store, Filter::default(), None), 0_u64, None);
    while let Some(page) = timeout(PAGE_TIMEOUT, walk.next()).await.map_err(|_| no_answer())?? {
        past = past.saturating_add(page.past as u64);
        as_of = Some(page.now);
        for record in &page.records {
            counts.add(record, page.now);
        }
        // On a store in memory, a walk never waits: without this, nobody else's turn would come.
        tokio::task::yield_now().await;
    }
    let took = started_at.elapsed();
    let finished = counts.map(|is_all, mut counted| {
        counted.past = if is_all { past } else { 0 };
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
