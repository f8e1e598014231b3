//! Swaps of concurrent callers ride together; a lone caller waits for nothing.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use semel::store::{Loaded, MemoryStore, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Claim, RecordId, Semel};
use semel_testkit::{PausingStore, Point};
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

#[tokio::test(start_paused = true)]
async fn no_batch_is_larger_than_the_bound_however_many_callers_wait() {
    let store = FarAway::new();
    let semel = Semel::new(store.clone());
    let callers: Vec<_> = (0..3_000)
        .map(|name| {
            let semel = semel.clone();
            tokio::spawn(async move { semel.claim(Claim::new(&key(&name.to_string()))).await.map(drop) })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    let batches = store.batches.lock().unwrap().clone();
    assert_eq!((batches.iter().sum::<usize>(), batches.iter().max()), (3_000, Some(&1_024)), "{batches:?}");
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
        let error = told.unwrap_err();
        assert_eq!(error.kind(), semel::ErrorKind::Unknown);
        assert!(error.permit_id().is_some(), "it is not said what to ask again with");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn what_is_on_its_way_on_one_runtime_survives_the_first_ask_of_another() {
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let semel = Semel::new(pausing.clone());
    let stops = [pausing.stop_at(Point::AfterSwap), pausing.stop_at(Point::AfterSwap)];
    let there = semel.clone();
    let thread = std::thread::spawn(move || {
        runtime().block_on(async {
            let claims = ["1", "2"].map(|name| {
                let semel = there.clone();
                tokio::spawn(async move { semel.claim(Claim::new(&key(name))).await.unwrap().as_str() })
            });
            let [one, two] = claims;
            (one.await.unwrap(), two.await.unwrap())
        })
    });
    runtime().block_on(async {
        for stop in &stops {
            stop.reached().await;
        }
        // With two batches on their way, this one queues up with the driver of its own runtime.
        assert_eq!(semel.claim(Claim::new(&key("3"))).await.unwrap().as_str(), "run");
        let [one, two] = stops;
        one.go_on();
        two.go_on();
    });
    assert_eq!(thread.join().unwrap(), ("run", "run"));
}

#[test]
fn a_runtime_that_ends_with_a_swap_on_its_way_does_not_slow_down_the_others() {
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let semel = Semel::new(pausing.clone());
    let stop = pausing.stop_at(Point::AfterSwap);
    let first = runtime();
    first.block_on(async {
        let claiming = semel.clone();
        tokio::spawn(async move { claiming.claim(Claim::new(&key("1"))).await.map(drop) });
        stop.reached().await;
    });
    drop(first);
    runtime().block_on(async {
        let mut claiming = std::pin::pin!(semel.claim(Claim::new(&key("2"))));
        let at_once = claiming.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(at_once.is_ready(), "the store answers at once, and nothing else is on its way");
        tokio::time::timeout(Duration::from_secs(10), semel.close()).await.expect("it ended").unwrap();
    });
}

#[test]
fn closing_waits_for_what_is_on_its_way_on_every_runtime() {
    const PATIENCE: Duration = Duration::from_secs(10);
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let semel = Semel::new(pausing.clone());
    let closing =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // What the engine does by itself runs where it is closed, so that its end needs no other runtime.
    closing.block_on(async { drop(semel.sweep_reports()) });
    // The first runtime is idle: its swap has arrived.
    let stop = pausing.stop_at(Point::AfterSwap);
    let idle = runtime();
    idle.block_on(async {
        let claiming = semel.clone();
        let claim = tokio::spawn(async move { claiming.claim(Claim::new(&key("1"))).await.map(drop) });
        stop.reached().await;
        stop.go_on();
        claim.await.unwrap().unwrap();
    });
    let stop = pausing.stop_at(Point::AfterSwap);
    let busy = runtime();
    busy.block_on(async {
        let claiming = semel.clone();
        tokio::spawn(async move { claiming.claim(Claim::new(&key("2"))).await.map(drop) });
        stop.reached().await;
    });
    let waited = closing.block_on(async {
        let before = Instant::now();
        semel.close().await.unwrap();
        before.elapsed()
    });
    assert!(waited >= PATIENCE, "the swap of the second runtime has not arrived, and it waited {waited:?}");
}

#[tokio::test]
async fn a_store_that_answers_fewer_swaps_than_it_was_asked_leaves_nobody_waiting() {
    struct Forgetful(MemoryStore);
    impl Store for Forgetful {
        fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
            let reply = self.0.swap(batch);
            Reply::later(async move {
                tokio::task::yield_now().await;
                Ok(reply.await?.map(|mut replies| {
                    if replies.len() > 1 {
                        replies.pop();
                    }
                    replies
                }))
            })
        }
        semel_testkit::delegate!(0: load, sweep, scan);
    }
    let semel = Semel::new(Forgetful(MemoryStore::new()));
    let callers: Vec<_> = (0..50)
        .map(|name| {
            let semel = semel.clone();
            tokio::spawn(async move { semel.claim(Claim::new(&key(&name.to_string()))).await })
        })
        .collect();
    let mut unknown = 0;
    for caller in callers {
        match tokio::time::timeout(Duration::from_secs(10), caller).await.unwrap().unwrap() {
            Ok(decision) => assert_eq!(decision.as_str(), "run"),
            Err(error) => {
                assert_eq!(error.kind(), semel::ErrorKind::Unknown);
                unknown += 1;
            }
        }
    }
    assert!(unknown > 1, "no caller of such a batch knows what the store did, and {unknown} were told");
}
