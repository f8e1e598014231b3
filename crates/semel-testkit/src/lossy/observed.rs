//! Looks, whenever an answer was lost, whether the swap had taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use semel::RecordId;
use semel::record::{Record, Version};
use semel::store::{Page, Reply, Scan, Store, Swap, SwapReply, Swept};

/// A way to a store whose lost swaps are looked after by another way.
pub(super) struct Observed {
    through: Arc<dyn Store>,
    direct: Arc<dyn Store>,
    landed: Arc<AtomicU64>,
}

impl Observed {
    pub(super) fn new(through: Arc<dyn Store>, direct: Arc<dyn Store>) -> Self {
        Self { through, direct, landed: Arc::default() }
    }

    /// How many batches of swaps took though their caller was told an error.
    pub(super) fn landed(&self) -> u64 {
        self.landed.load(Ordering::Relaxed)
    }
}

impl Store for Observed {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        let expected: Vec<(RecordId, Option<Version>)> =
            batch.iter().map(|swap| (swap.id(), swap.expected)).collect();
        let (reply, direct) = (self.through.swap(batch), Arc::clone(&self.direct));
        let landed = Arc::clone(&self.landed);
        Box::pin(async move {
            let answer = reply.await;
            if answer.is_err() {
                let found = direct.load(expected.iter().map(|(id, _)| *id).collect()).await?.value;
                let version = |found: &Option<Record>| found.as_ref().map(|record| record.version);
                let took =
                    expected.iter().zip(&found).any(|((_, expected), found)| version(found) != *expected);
                landed.fetch_add(u64::from(took), Ordering::Relaxed);
            }
            answer
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        self.through.load(ids)
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.through.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.through.scan(scan)
    }
}
