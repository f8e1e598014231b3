//! Sees every write at the store itself, under the feet of networks, engines and callers.

use std::sync::{Arc, Mutex, PoisonError};

use semel::RecordId;
use semel::record::Record;
use semel::store::{MemoryStore, Page, Reply, Scan, Store, Swap, SwapReply, Swept};

/// The real store, with every write remembered in order.
#[derive(Clone)]
pub(super) struct Witness {
    store: Arc<MemoryStore>,
    seen: Arc<Mutex<Vec<Record>>>,
}

impl Witness {
    pub(super) fn new(store: MemoryStore) -> Self {
        Self { store: Arc::new(store), seen: Arc::default() }
    }

    /// Every record that was written, in the order of the writes.
    pub(super) fn written(&self) -> Vec<Record> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Store for Witness {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        let (reply, seen) = (self.store.swap(batch), Arc::clone(&self.seen));
        Box::pin(async move {
            let answer = reply.await?;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            for reply in &answer.value {
                if let SwapReply::Swapped(record) = reply {
                    seen.push(Record::clone(record));
                }
            }
            Ok(answer)
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        self.store.load(ids)
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.store.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.store.scan(scan)
    }
}
