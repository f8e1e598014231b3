//! Sees every write at the store itself, under the feet of networks, engines and callers.

use std::sync::{Arc, Mutex, PoisonError};

use semel::RecordId;
use semel::record::Record;
use semel::store::{Answer, Page, Reply, Scan, Store, Swap, SwapReply, Swept};

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

    fn watch<T: Send + 'static>(&self, reply: Reply<T>, look: fn(&T, &Seen)) -> Reply<T> {
        let seen = self.seen.clone();
        Box::pin(async move {
            let answer: Answer<T> = reply.await?;
            look(&answer.value, &seen);
            Ok(answer)
        })
    }
}

impl Store for Witness {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        self.watch(self.store.swap(batch), |replies, seen| {
            seen.add(replies.iter().filter_map(|reply| match reply {
                SwapReply::Swapped(record) => Some(&**record),
                SwapReply::Stale(found) => found.as_deref(),
                SwapReply::Full => None,
            }));
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        self.watch(self.store.load(ids), |found, seen| seen.add(found.iter().flatten()))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.store.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.watch(self.store.scan(scan), |page, seen| seen.add(page.records.iter()))
    }
}
