//! Stores that are wrong in ways that only a load, a bad network or a long run brings to light.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Record, Version};
use semel::store::{
    Answer, Loaded, MemoryStore, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept,
};
use semel::{Error, ErrorKind, RecordId, Result};

/// Reads come from a copy that lags behind, and so does what a stale swap is handed.
pub(crate) struct Lagging(Arc<Copied>);

/// What was written, and when it can be read.
type Copies = HashMap<RecordId, Vec<(Timestamp, Arc<Record>)>>;

struct Copied {
    store: MemoryStore,
    lag: Duration,
    copy: Mutex<Copies>,
}

impl Lagging {
    pub(crate) fn new(lag: Duration) -> Self {
        Self(Arc::new(Copied { store: MemoryStore::new(), lag, copy: Mutex::default() }))
    }
}

impl Copied {
    fn copy(&self) -> MutexGuard<'_, Copies> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, id: RecordId, now: Timestamp) -> Option<Arc<Record>> {
        let copy = self.copy();
        let seen = copy.get(&id)?.iter().rev().find(|(from, _)| *from <= now);
        // What is past its time is gone from the copy too, or whoever finds it there would swap in vain for ever.
        seen.map(|(_, record)| Arc::clone(record)).filter(|record| record.is_live(now))
    }

    async fn swap(&self, batch: Swaps) -> Result<Answer<SwapReplies>> {
        let ids: Vec<_> = batch.iter().map(Swap::id).collect();
        let mut answer = self.store.swap(batch).await?;
        for (id, reply) in ids.into_iter().zip(&mut answer.value) {
            match reply {
                SwapReply::Swapped(record) => {
                    let from = record.changed_at.plus(self.lag);
                    self.copy().entry(id).or_default().push((from, Arc::clone(record)));
                }
                SwapReply::Stale(found) => *found = self.read(id, answer.now),
                SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => {}
            }
        }
        // Whoever finds yesterday's record asks again, and the copy must get on meanwhile.
        tokio::task::yield_now().await;
        Ok(answer)
    }
}

impl Store for Lagging {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let copied = Arc::clone(&self.0);
        Reply::later(async move { copied.swap(batch).await })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let copied = Arc::clone(&self.0);
        Reply::later(async move {
            let now = copied.store.load(Vec::new()).await?.now;
            Ok(Answer::new(now, ids.into_iter().map(|id| Ok(copied.read(id, now))).collect()))
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.0.store.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.0.store.scan(scan)
    }
}

/// One swap in so many is made whatever version is there.
pub(crate) struct Blind {
    store: Arc<MemoryStore>,
    one_in: u64,
    swaps: AtomicU64,
}

impl Blind {
    pub(crate) fn one_in(swaps: u64) -> Self {
        Self { store: Arc::default(), one_in: swaps, swaps: AtomicU64::new(0) }
    }
}

/// Makes the swaps at whatever version is there.
async fn overwrite(store: &dyn Store, batch: Swaps) -> Result<Answer<SwapReplies>> {
    let found = store.load(batch.iter().map(Swap::id).collect()).await?.records()?;
    let blind = batch.into_iter().zip(found).map(|(swap, found)| {
        let expected = found.map(|record| record.version);
        Swap { expected, ..swap }
    });
    store.swap(blind.collect()).await
}

impl Store for Blind {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let count = self.swaps.fetch_add(1, Ordering::Relaxed);
        if !count.is_multiple_of(self.one_in) {
            return self.store.swap(batch);
        }
        let store = Arc::clone(&self.store);
        Reply::later(async move { overwrite(&*store, batch).await })
    }

    semel_testkit::delegate!(store: load, sweep, scan);
}

/// One write in so many is acknowledged and not made.
pub(crate) struct Dropping {
    store: Arc<MemoryStore>,
    one_in: u64,
    swaps: AtomicU64,
}

impl Dropping {
    pub(crate) fn one_in(swaps: u64) -> Self {
        Self { store: Arc::default(), one_in: swaps, swaps: AtomicU64::new(0) }
    }
}

impl Store for Dropping {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let count = self.swaps.fetch_add(1, Ordering::Relaxed);
        if !(count + 1).is_multiple_of(self.one_in) {
            return self.store.swap(batch);
        }
        let now = self.store.load(Vec::new());
        Reply::later(async move {
            let now = now.await?.now;
            let lie = |swap: Swap| {
                let version = swap.expected.map_or(u64::MAX / 2, |version| version.get() + 1);
                SwapReply::Swapped(swap.next.stamp(Version::new(version), now))
            };
            Ok(Answer::new(now, batch.into_iter().map(lie).collect()))
        })
    }

    semel_testkit::delegate!(store: load, sweep, scan);
}

/// What a client makes of a reply that was lost.
#[derive(Clone, Copy)]
pub(crate) enum Taken {
    /// Nothing happened.
    ForNothing,
    /// It must be made once more, whatever is there by now.
    ForAnotherTry,
}

/// A client that takes a lost reply for something that it is not.
pub(crate) struct Mistaken {
    store: Arc<dyn Store>,
    taken: Taken,
}

impl Mistaken {
    pub(crate) fn new(store: Arc<dyn Store>, taken: Taken) -> Self {
        Self { store, taken }
    }
}

impl Store for Mistaken {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let (store, taken) = (Arc::clone(&self.store), self.taken);
        Reply::later(async move {
            match (store.swap(batch.clone()).await, taken) {
                (Err(error), Taken::ForNothing) if error.kind() == ErrorKind::Unknown => {
                    Err(Error::new(ErrorKind::Unavailable, "no answer; ask again"))
                }
                (Err(error), Taken::ForAnotherTry) if error.kind() == ErrorKind::Unknown => {
                    overwrite(&*store, batch).await
                }
                (answer, _) => answer,
            }
        })
    }

    semel_testkit::delegate!(store: load, sweep, scan);
}
