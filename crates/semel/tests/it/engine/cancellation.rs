//! Dropping any future at any await leaves no second run and no stuck key.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use semel::record::PermitId;
use semel::store::MemoryStore;
use semel::{Claim, Permit, Semel};
use semel_testkit::{Fault, FaultyStore};

use crate::tokio_clock::TokioClock;
use crate::world::{follows_a_run_that_was_given_back, granted, key, outcome, replayed};

const LEASE: Duration = Duration::from_secs(10);

fn engines() -> (Semel, Semel) {
    let store = Arc::new(MemoryStore::builder().clock(TokioClock::start()).build());
    let slow = FaultyStore::new(store.clone(), |_| Fault::Delay(Duration::from_millis(20)));
    let build = |builder: semel::SemelBuilder| builder.lease(LEASE).build().unwrap();
    (build(Semel::builder(slow)), build(Semel::builder_shared(store)))
}

/// Polls a future so many times, a moment apart, and then drops it. Says whether it had ended.
async fn polled<F: Future>(times: u32, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..times {
        if let Poll::Ready(ended) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(ended);
        }
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_nobody_waits_for_is_given_back_at_once() {
    for times in 1..12 {
        let (semel, another) = engines();
        let claimed = polled(times, semel.claim(Claim::new(&key("1")))).await;
        if let Some(decision) = claimed {
            granted(decision.unwrap()).complete(outcome("paid")).await.unwrap();
            assert!(times > 1);
            continue;
        }
        // Well within the lease.
        tokio::time::sleep(LEASE / 20).await;
        let permit = granted(another.claim(Claim::new(&key("1"))).await.unwrap());
        assert!(follows_a_run_that_was_given_back(&permit), "dropped after {times} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_under_a_permit_of_ones_own_is_never_given_away() {
    for times in 1..12 {
        let (semel, another) = engines();
        let own = || Claim::new(&key("1")).permit_id(PermitId::new(7));
        drop(polled(times, semel.claim(own())).await);
        // Its caller asks again, on another connection, before it is known what became of the first ask.
        let permit = granted(another.claim(own()).await.unwrap());
        tokio::time::sleep(LEASE / 20).await;
        let next = another.claim(Claim::new(&key("1"))).await.unwrap();
        assert_eq!((next.as_str(), permit.attempt()), ("busy", 1), "dropped after {times} polls");
        permit.complete(outcome("paid")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_that_nobody_waits_for_is_carried_out() {
    for times in 1..12 {
        let (semel, another) = engines();
        let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
        drop(polled(times, permit.complete(outcome("paid"))).await);
        tokio::time::sleep(LEASE / 20).await;
        assert_eq!(replayed(another.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    }
}

#[tokio::test(start_paused = true)]
async fn once_dropped_at_any_poll_never_runs_twice_within_the_lease() {
    for times in 1..40 {
        let (semel, another) = engines();
        let runs = AtomicU32::new(0);
        let work = async |permit: Permit| {
            runs.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            permit.step("charge", async || Ok::<_, String>(7)).await.map_err(|error| error.to_string())
        };
        let ended = polled(times, semel.once(&key("1"), &(), work)).await;
        tokio::time::sleep(LEASE / 20).await;
        let started = runs.load(Ordering::SeqCst);
        let next = another.claim(Claim::new(&key("1"))).await.unwrap().as_str();
        match (ended.is_some(), started) {
            (true, _) => assert_eq!(next, "replay", "after {times} polls"),
            (false, 0) => assert_eq!(next, "run", "never started, dropped after {times} polls"),
            (false, _) => assert!(matches!(next, "busy" | "replay"), "{next} after {times} polls"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn claim_all_dropped_half_way_gives_everything_back() {
    for times in 1..40 {
        let (semel, another) = engines();
        let claims = || (0..4).map(|name| Claim::new(&key(&name.to_string()))).collect::<Vec<_>>();
        if polled(times, semel.claim_all(claims())).await.is_some() {
            continue;
        }
        tokio::time::sleep(LEASE / 20).await;
        let all = another.claim_all(claims()).await.unwrap();
        assert!(matches!(all, semel::ClaimedAll::Run(_)), "dropped after {times} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_permit_is_not_released() {
    let (_, semel) = engines();
    drop(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()));
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resume_that_nobody_waits_for_leaves_its_run_alone() {
    for times in 1..12 {
        let (semel, another) = engines();
        let permit = granted(another.claim(Claim::new(&key("1"))).await.unwrap());
        drop(polled(times, semel.resume(&key("1"), permit.id())).await);
        tokio::time::sleep(LEASE / 20).await;
        let next = another.claim(Claim::new(&key("1"))).await.unwrap().as_str();
        assert_eq!(next, "busy", "a run was given away after {times} polls");
        permit.complete(outcome("paid")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn claim_all_dropped_half_way_leaves_a_run_alone_that_went_on_before_it() {
    let mut dropped = 0;
    for times in 1..60 {
        let (semel, another) = engines();
        let mut keys = ["1", "2", "3", "4"].map(key);
        keys.sort_by_key(semel::Key::id);
        let before = granted(another.claim(Claim::new(&keys[0])).await.unwrap());
        let claims = keys.iter().map(|key| Claim::new(key).permit_id(before.id())).collect();
        if polled(times, semel.claim_all(claims)).await.is_some() {
            continue;
        }
        dropped += 1;
        tokio::time::sleep(LEASE / 20).await;
        let next = another.claim(Claim::new(&keys[0])).await.unwrap().as_str();
        assert_eq!(next, "busy", "a run was given away after {times} polls");
        before.complete(outcome("paid")).await.unwrap();
    }
    assert!(dropped > 10, "{dropped}");
}
