//! The simulator over stores of one's own: what they lose is found, and what they only fail to say is not held against them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::RecordId;
use semel::store::{Loaded, MemoryStore, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel_testkit::simulator::{Flaw, StoreClock, simulate, simulate_on};
use semel_testkit::{Call, Fault, FaultyStore};

fn memory(clock: StoreClock) -> MemoryStore {
    MemoryStore::builder().clock(clock).build()
}

#[test]
fn a_store_that_is_handed_in_makes_the_same_world() {
    for seed in 1..=20 {
        let handed_in = simulate_on(seed, Flaw::None, |clock, _| Arc::new(memory(clock))).unwrap();
        assert_eq!(handed_in, simulate(seed, Flaw::None).unwrap());
    }
}

#[test]
fn a_write_that_took_and_was_never_acknowledged_breaks_no_promise() {
    for seed in 1..=200 {
        let report = simulate_on(seed, Flaw::None, |clock, _| {
            let mut swaps = 0_u64;
            Arc::new(FaultyStore::new(Arc::new(memory(clock)), move |call| {
                swaps += u64::from(call == Call::Swap);
                let lost = call == Call::Swap && swaps.is_multiple_of(4);
                if lost { Fault::LoseReply(Duration::ZERO) } else { Fault::None }
            }))
        });
        let report = report.unwrap();
        assert!(report.violations.is_empty(), "{report}");
    }
}

/// A store that has forgotten everything at its fortieth call.
struct Forgetful {
    clock: StoreClock,
    calls: AtomicU64,
    store: Mutex<Arc<MemoryStore>>,
}

impl Forgetful {
    fn store(&self) -> Arc<MemoryStore> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if self.calls.fetch_add(1, Ordering::Relaxed) == 40 {
            *store = Arc::new(memory(self.clock));
        }
        Arc::clone(&store)
    }
}

impl Store for Forgetful {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.store().swap(batch)
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.store().load(ids)
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.store().sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.store().scan(scan)
    }
}

#[test]
fn a_store_that_forgets_is_found_out() {
    let found = (1..=200).find(|seed| {
        let report = simulate_on(*seed, Flaw::None, |clock, _| {
            Arc::new(Forgetful {
                clock,
                calls: AtomicU64::new(0),
                store: Mutex::new(Arc::new(memory(clock))),
            })
        });
        !report.unwrap().violations.is_empty()
    });
    println!("found at seed {found:?}");
    assert!(found.is_some());
}
