//! A store whose reads are answered by another, as if a standby were asked: what no client may ever do.

use std::sync::Arc;

use semel::RecordId;
use semel::record::Record;
use semel::store::{Page, Reply, Scan, Store, Swap, SwapReply, Swept};

/// A store whose reads are answered by another.
///
/// For negative controls: a copy that lags behind must be found out by its history, or the history proves nothing.
#[derive(Clone)]
pub struct ReadsElsewhere {
    writes: Arc<dyn Store>,
    reads: Arc<dyn Store>,
}

impl ReadsElsewhere {
    /// Writes to the one and reads from the other.
    pub fn new(writes: Arc<dyn Store>, reads: Arc<dyn Store>) -> Self {
        Self { writes, reads }
    }
}

impl Store for ReadsElsewhere {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        self.writes.swap(batch)
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        self.reads.load(ids)
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.writes.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.reads.scan(scan)
    }
}
