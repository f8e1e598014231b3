//! Swaps of concurrent callers ride together; a lone caller waits for nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::{Loaded, MemoryStore, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Claim, RecordId, Semel};
use tokio::time::Instant;

use crate::world::{key, outcome};

const ROUND_TRIP: Duration = Duration::from_millis(10);

/// A store a round trip away, that notes how large each batch was and how many were on their way at once.
#[derive(Clone)]
struct FarAway {
    store: Arc<MemoryStore>,
    batches: Arc<Mutex<Vec<usize>>>,
    on_their_way: Arc<AtomicUsize>,
    most_on_their_way: Arc<AtomicUsize>,
}

impl FarAway {
    fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            batches: Arc::default(),
            on_their_way: Arc::default(),
            most_on_their_way: Arc::default(),
        }
    }
}

impl Store for FarAway {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.batches.lock().unwrap().push(batch.len());
        let store = self.clone();
        Reply::later(async move {
            let now = store.on_their_way.fetch_add(1, Ordering::SeqCst) + 1;
            store.most_on_their_way.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(ROUND_TRIP).await;
            let answer = store.store.swap(batch).await;
            store.on_their_way.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }

    semel_testkit::delegate!(store: load, sweep, scan);
}

#[tokio::test(start_paused = true)]
async fn a_lone_caller_waits_for_one_round_trip_and_nothing_else() {
    let semel = Semel::new(FarAway::new());
    let before = Instant::now();
    drop(semel.claim(Claim::new(&key("1"))).await.unwrap());
    assert_eq!(before.elapsed(), ROUND_TRIP);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_share_a_handful_of_round_trips() {
    let store = FarAway::new();
    let semel = Semel::new(store.clone());
    let before = Instant::now();
    let callers: Vec<_> = (0..1_000)
        .map(|name| {
            let semel = semel.clone();
            tokio::spawn(async move {
                let decision = semel.claim(Claim::new(&key(&name.to_string()))).await.unwrap();
                crate::world::granted(decision).complete(outcome("paid")).await.unwrap();
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(before.elapsed() <= ROUND_TRIP * 8, "{:?}", before.elapsed());
    let batches = store.batches.lock().unwrap().clone();
    assert_eq!(batches.iter().sum::<usize>(), 2_000);
    assert!(batches.len() <= 12, "{batches:?}");
    assert!(batches.iter().all(|batch| *batch <= 1_024), "{batches:?}");
    assert!(store.most_on_their_way.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn a_store_that_panics_leaves_nobody_waiting() {
    struct Panics;
    impl Store for Panics {
        fn swap(&self, _: Swaps) -> Reply<SwapReplies> {
            Reply::later(async {
                tokio::task::yield_now().await;
                panic!("on purpose")
            })
        }
        fn load(&self, _: Vec<RecordId>) -> Reply<Vec<Loaded>> {
            Reply::later(async { panic!("on purpose") })
        }
        fn sweep(&self, _: usize) -> Reply<Swept> {
            Reply::later(async { panic!("on purpose") })
        }
        fn scan(&self, _: Scan) -> Reply<Page> {
            Reply::later(async { panic!("on purpose") })
        }
    }
    let semel = Semel::new(Panics);
    let callers: Vec<_> = (0..50)
        .map(|name| {
            let semel = semel.clone();
            tokio::spawn(async move { semel.claim(Claim::new(&key(&name.to_string()))).await.map(drop) })
        })
        .collect();
    for caller in callers {
        let told = tokio::time::timeout(Duration::from_secs(10), caller).await.unwrap().unwrap();
        assert_eq!(told.unwrap_err().kind(), semel::ErrorKind::Unknown);
    }
}
