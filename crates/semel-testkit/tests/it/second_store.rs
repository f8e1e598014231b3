//! The suite takes a store that is unlike the memory store in all that is left open: it hands back what is past its
//! keep until a sweep, ends pages early, and is shared by all tests at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use semel::RecordId;
use semel::clock::{Clock, SystemClock, Timestamp};
use semel::record::{Record, Version};
use semel::store::{Answer, Loaded, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept};

/// How many records a page looks at, whether it shows them or not.
const LOOKED_AT_MAX: usize = 50;

struct Kept {
    record: Arc<Record>,
    until: Option<Timestamp>,
}

#[derive(Default)]
struct Records {
    clock: SystemClock,
    writes: u64,
    kept: BTreeMap<RecordId, Kept>,
}

static RECORDS: LazyLock<Mutex<Records>> = LazyLock::new(Mutex::default);

struct Shared;

impl Shared {
    fn answer<T: Send + 'static>(ask: impl FnOnce(&mut Records, Timestamp) -> T) -> Reply<T> {
        let mut records: MutexGuard<'_, Records> = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        let now = records.clock.now();
        let value = ask(&mut records, now);
        Reply::ready(Ok(Answer::new(now, value)))
    }
}

impl Records {
    fn swap(&mut self, swap: Swap, now: Timestamp) -> SwapReply {
        let id = swap.id();
        let found = self.kept.get(&id).map(|kept| &kept.record);
        if found.map(|record| record.version) != swap.expected {
            return SwapReply::Stale(found.cloned());
        }
        self.writes += 1;
        let record = swap.next.stamp(Version::new(self.writes), now);
        self.kept.insert(id, Kept { record: Arc::clone(&record), until: swap.keep.until(now) });
        SwapReply::Swapped(record)
    }

    fn sweep(&mut self, limit: usize, now: Timestamp) -> Swept {
        let past = |kept: &Kept| kept.until.is_some_and(|until| until <= now);
        let all: Vec<_> = self.kept.iter().filter(|(_, kept)| past(kept)).map(|(id, _)| *id).collect();
        let removed = all.iter().take(limit).filter_map(|id| self.kept.remove(id)).count();
        Swept { removed, more_left: all.len() > removed }
    }

    fn scan(&self, scan: &Scan, now: Timestamp) -> Page {
        let mut page = Page::default();
        let rest = self.kept.iter().filter(|(id, _)| scan.after.is_none_or(|after| **id > after));
        let mut last = scan.after;
        for (looked_at, (id, kept)) in rest.enumerate() {
            if looked_at == LOOKED_AT_MAX || page.records.len() == scan.limit {
                page.next = last;
                break;
            }
            if scan.filter.matches(&kept.record, now) {
                page.records.push(Arc::clone(&kept.record));
            }
            last = Some(*id);
        }
        page
    }
}

impl Store for Shared {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        Self::answer(|records, now| batch.into_iter().map(|swap| records.swap(swap, now)).collect())
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let load = |records: &Records, id| records.kept.get(id).map(|kept: &Kept| Arc::clone(&kept.record));
        Self::answer(|records, _| ids.iter().map(|id| Ok(load(records, id))).collect())
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        Self::answer(|records, now| records.sweep(limit, now))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        Self::answer(|records, now| records.scan(&scan, now))
    }
}

async fn open() -> Shared {
    Shared
}

semel_testkit::conformance!(open);
