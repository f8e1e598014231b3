//! The lease while work runs.

use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, ErrorKind, Once, OnceError, Semel};
use semel_testkit::{Call, Fault, FaultyStore};
use std::sync::Arc;
use tokio::time::{Instant, sleep};

use crate::tokio_clock::TokioClock;
use crate::world::{granted, key, outcome};

const LEASE: Duration = Duration::from_secs(30);

fn engine(fault: impl Fn(Call) -> Fault + Send + 'static) -> (Semel, Semel) {
    let store = Arc::new(MemoryStore::builder().clock(TokioClock::start()).build());
    let behind = FaultyStore::new(store.clone(), fault);
    let semel = Semel::builder(behind).lease(LEASE).build().unwrap();
    (semel, Semel::builder_shared(store).lease(LEASE).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn long_work_keeps_its_lease() {
    let (semel, another) = engine(|_| Fault::None);
    let work = semel.once_with(Claim::new(&key("1")), async |permit| {
        for _ in 0..20 {
            sleep(LEASE / 2).await;
            assert!(!permit.is_lost());
            assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
        }
        Ok::<_, String>("paid".to_owned())
    });
    assert!(matches!(work.await.unwrap(), Once::Ran(_)));
}

#[tokio::test(start_paused = true)]
async fn work_is_told_when_another_run_took_over() {
    let (semel, another) = engine(|_| Fault::None);
    let claim = || Claim::new(&key("1")).owner("node-1").reentrant();
    let work = semel.once_with(claim(), async |permit| {
        granted(another.claim(claim()).await.unwrap());
        let before = Instant::now();
        permit.lost().await;
        assert!(before.elapsed() <= LEASE / 3 + Duration::from_secs(1));
        Err::<String, _>("stopped".to_owned())
    });
    assert!(matches!(work.await, Err(OnceError::Work(_))));
    assert_eq!(semel.stats().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn work_is_told_when_the_lease_runs_out_because_the_store_is_away() {
    let mut asked = 0;
    let (semel, _) = engine(move |_| Fault::None);
    drop(semel);
    let store = Arc::new(MemoryStore::builder().clock(TokioClock::start()).build());
    let behind = FaultyStore::new(store, move |_| {
        asked += 1;
        if asked == 1 { Fault::None } else { Fault::Refuse }
    });
    let semel = Semel::builder(behind).lease(LEASE).build().unwrap();
    let before = Instant::now();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let _heartbeat = permit.heartbeat();
    permit.lost().await;
    assert_eq!(before.elapsed(), LEASE, "the deadline runs from before the claim was sent");
    assert_eq!(permit.complete(outcome("late")).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reply_shortens_the_lease_and_never_stretches_it() {
    let slow = Duration::from_secs(10);
    let (semel, another) = engine(move |_| Fault::Delay(slow));
    let before = Instant::now();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    assert_eq!(before.elapsed(), slow * 2);
    permit.lost().await;
    assert_eq!(before.elapsed(), LEASE);
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy", "the store still waits");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_loss_of_a_lease_that_is_renewed_meanwhile_waits_for_the_new_deadline() {
    let (semel, _) = engine(|_| Fault::None);
    let before = Instant::now();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let renewal = async {
        tokio::time::sleep(LEASE / 2).await;
        permit.renew().await.unwrap();
    };
    tokio::join!(permit.lost(), renewal);
    assert!(permit.is_lost());
    assert_eq!(before.elapsed(), LEASE / 2 + LEASE, "the lease ran from its renewal");
}
