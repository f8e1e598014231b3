//! Sees every write at the store itself, under the feet of networks, engines and callers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use semel::RecordId;
use semel::record::Record;
use semel::store::{Answer, Loaded, Page, Reply, Scan, Store, SwapReplies, SwapReply, Swaps};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::flaw::Flaw;

/// The real store, with every write remembered in order.
#[derive(Clone)]
pub(super) struct Witness {
    store: Arc<dyn Store>,
    seen: Seen,
}

/// Every record that was seen, in the order of the writes.
///
/// A write whose reply was lost with the store's power is seen when somebody finds its record, which is before anybody can
/// write over it.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Record>>>);

impl Seen {
    fn add<'a>(&self, records: impl Iterator<Item = &'a Record>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            if !seen.iter().rev().any(|known| known == record) {
                seen.push(record.clone());
            }
        }
    }
}

impl Witness {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, seen: Seen::default() }
    }

    /// Every record that was written, in the order of the writes.
    pub(super) fn written(&self) -> Vec<Record> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn watch<T: Send + Unpin + 'static>(&self, reply: Reply<T>, look: fn(&T, &Seen)) -> Reply<T> {
        let seen = self.seen.clone();
        Reply::later(async move {
            let answer: Answer<T> = reply.await?;
            look(&answer.value, &seen);
            Ok(answer)
        })
    }
}

impl Store for Witness {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.watch(self.store.swap(batch), |replies, seen| {
            seen.add(replies.iter().filter_map(|reply| match reply {
                SwapReply::Swapped(record) => Some(&**record),
                SwapReply::Stale(found) => found.as_deref(),
                SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => None,
            }));
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.watch(self.store.load(ids), |found, seen| {
            seen.add(found.iter().flatten().flatten().map(|record| &**record));
        })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.watch(self.store.scan(scan), |page, seen| {
            seen.add(page.records.iter().map(|record| &**record));
        })
    }

    crate::delegate!(store: sweep);
}

/// Everything that happened, in order.
#[derive(Clone)]
pub(super) struct Trace {
    started_at: Instant,
    echo: Echo,
    told: Arc<Mutex<(Sha256, u64)>>,
}

/// Whether somebody reads along: set `SEMEL_TRACE` to anything.
#[derive(Clone, Copy, PartialEq)]
enum Echo {
    None,
    ToStderr,
}

impl Trace {
    pub(super) fn start() -> Self {
        let echo = if std::env::var_os("SEMEL_TRACE").is_some() { Echo::ToStderr } else { Echo::None };
        Self { started_at: Instant::now(), echo, told: Arc::new(Mutex::new((Sha256::new(), 0))) }
    }

    pub(super) fn tell(&self, who: &str, what: &str) {
        let at = self.started_at.elapsed().as_micros();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0.update(format!("{at} {who}: {what}\n"));
        told.1 += 1;
        if self.echo == Echo::ToStderr {
            eprintln!("{at:>12} {who}: {what}");
        }
    }

    pub(super) fn digest(&self) -> ([u8; 32], u64) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.0.clone().finalize().into(), told.1)
    }
}

/// What the work writes to.
#[derive(Clone)]
pub(super) struct Resource {
    flaw: Flaw,
    writes: Arc<Mutex<Writes>>,
}

#[derive(Default)]
struct Writes {
    accepted: BTreeMap<RecordId, Vec<u64>>,
    refused: u64,
}

impl Resource {
    pub(super) fn new(flaw: Flaw) -> Self {
        Self { flaw, writes: Arc::default() }
    }

    /// Writes under a fence; says whether it was taken.
    pub(super) fn write(&self, id: RecordId, fence: u64) -> bool {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = writes.accepted.entry(id).or_default();
        let is_current = accepted.last().is_none_or(|seen| *seen <= fence);
        if is_current || self.flaw == Flaw::NoFencing {
            accepted.push(fence);
            return true;
        }
        writes.refused += 1;
        false
    }

    pub(super) fn refused(&self) -> u64 {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).refused
    }

    /// The fences under which writes were taken, in order, by key.
    pub(super) fn accepted(&self) -> BTreeMap<RecordId, Vec<u64>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).accepted.clone()
    }
}
