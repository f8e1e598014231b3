//! Two actors in an order that a test forces: what holds only by accident of timing does not hold here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use semel::record::State;
use semel::store::{MemoryStore, Store};
use semel::{
    Claim, ClaimedAll, Decision, ErrorKind, Lapse, Probed, ReleaseAnswer, Renewal, Resolution, Resolved,
    Semel,
};
use semel_testkit::{Call, ManualClock, PausingStore, Point};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::tokio_clock::TokioClock;
use crate::world::{Remote, granted, key, outcome, replayed};

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_mins(10);

/// An engine whose calls the test can stop, and one on the same store that is never stopped.
struct Stage {
    semel: Semel,
    another: Semel,
    pausing: PausingStore,
}

fn stage() -> Stage {
    stage_over(Arc::new(MemoryStore::builder().clock(TokioClock::start()).build()))
}

fn stage_over(store: Arc<dyn Store>) -> Stage {
    let pausing = PausingStore::new(Arc::clone(&store));
    let build =
        |builder: semel::SemelBuilder| builder.lease(LEASE).retention(RETENTION).no_sweep().build().unwrap();
    let semel = build(Semel::builder(Remote::new(Arc::new(pausing.clone()))));
    Stage { semel, another: build(Semel::builder_shared(store).owner("another")), pausing }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_renewal_counts_from_before_it_was_sent() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    tokio::time::sleep(LEASE / 2).await;
    let stop = pausing.stop_at(Point::AfterSwap);
    let (sent_at, renewing) = (Instant::now(), permit.clone());
    let renewing = tokio::spawn(async move { renewing.renew().await });
    stop.reached().await;
    tokio::time::sleep(LEASE / 3).await;
    stop.go_on();
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Renewed);
    permit.lost().await;
    assert_eq!(sent_at.elapsed(), LEASE, "a slow reply stretched the lease");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_replay_cache_counts_from_before_the_ask_was_sent() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let stop = pausing.stop_at(Point::AfterSwap);
    let sent_at = Instant::now();
    let completing = tokio::spawn(async move { permit.complete(outcome("paid")).await });
    stop.reached().await;
    tokio::time::sleep(RETENTION / 2).await;
    stop.go_on();
    completing.await.unwrap().unwrap();
    let asked = pausing.count(Call::Swap);
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    assert_eq!(pausing.count(Call::Swap), asked, "it was kept in memory");
    tokio::time::sleep_until(sent_at + RETENTION).await;
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_verdict_of_a_probe_is_not_used_for_a_later_run() {
    let Stage { semel, another, .. } = stage();
    let hold = || Claim::new(&key("1")).lapse(Lapse::Hold);
    granted(another.claim(hold()).await.unwrap());
    tokio::time::sleep(LEASE).await;
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, may_answer) = (Arc::clone(&asked), Arc::clone(&go_on));
    let probes = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&probes);
    let probing = Claim::new(&key("1")).probe(move |_| {
        let (told, may_answer, nth) =
            (Arc::clone(&told), Arc::clone(&may_answer), counted.fetch_add(1, Ordering::SeqCst));
        async move {
            told.notify_one();
            may_answer.notified().await;
            if nth == 0 { Probed::Landed(outcome("the first run's")) } else { Probed::CannotTell }
        }
    });
    let claiming = tokio::spawn(async move { semel.claim(probing).await });
    asked.notified().await;
    // While the probe looks at the first run, an operator releases it, and a second one lapses.
    let resolution = Resolution::Release { reason: "it never left".into() };
    assert_eq!(another.resolve(&key("1"), resolution).await.unwrap(), Resolved::Resolved);
    assert_eq!(granted(another.claim(hold()).await.unwrap()).attempt(), 2);
    tokio::time::sleep(LEASE).await;
    go_on.notify_one();
    asked.notified().await;
    go_on.notify_one();
    assert_eq!(claiming.await.unwrap().unwrap().as_str(), "held", "a verdict on attempt 1 settled attempt 2");
    assert_eq!(probes.load(Ordering::SeqCst), 2, "the second run is probed by itself");
}

#[tokio::test(start_paused = true)]
async fn of_many_claims_that_bring_a_probe_one_at_a_time_uses_it() {
    let Stage { semel, another, .. } = stage();
    granted(another.claim(Claim::new(&key("1")).lapse(Lapse::Hold)).await.unwrap());
    tokio::time::sleep(LEASE).await;
    let (running, most, probes) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let claim = || {
        let (running, most, probes) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&probes));
        Claim::new(&key("1")).probe(move |_| {
            let (running, most, probes) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&probes));
            async move {
                probes.fetch_add(1, Ordering::SeqCst);
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(25)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Probed::CannotTell
            }
        })
    };
    for round in 1..=3 {
        let callers: Vec<_> = (0..10)
            .map(|nth| {
                let (semel, claim) = (semel.clone(), claim());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(nth * 2)).await;
                    semel.claim(claim).await.unwrap().as_str()
                })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), "held");
        }
        assert_eq!(probes.load(Ordering::SeqCst), round, "after CannotTell a later claim probes again");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn duplicates_are_not_counted_twice_after_a_lost_reply() {
    let Stage { semel, another, pausing } = stage();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    }
    let stop = pausing.stop_at(Point::AfterSwap);
    let flushing = semel.clone();
    let flushing = tokio::spawn(async move { flushing.flush().await });
    stop.reached().await;
    stop.lose_reply();
    flushing.await.unwrap().unwrap();
    semel.flush().await.unwrap();
    assert_eq!(another.get(&key("1")).await.unwrap().unwrap().duplicates.count, 3);
}

#[tokio::test(start_paused = true)]
async fn counts_that_were_certainly_not_written_are_written_later() {
    let Stage { semel, another, pausing } = stage();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    for point in [Point::BeforeLoad, Point::BeforeSwap] {
        let stop = pausing.stop_at(point);
        let flushing = semel.clone();
        let flushing = tokio::spawn(async move { flushing.flush().await });
        stop.reached().await;
        stop.refuse();
        assert_eq!(flushing.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(another.get(&key("1")).await.unwrap().unwrap().duplicates.count, 0);
    }
    semel.flush().await.unwrap();
    assert_eq!(another.get(&key("1")).await.unwrap().unwrap().duplicates.count, 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_does_not_keep_the_others_from_being_woken() {
    let Stage { semel, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let waiting = |semel: Semel| {
        tokio::spawn(async move { semel.claim_or_wait(Claim::new(&key("1")), LEASE).await.unwrap().as_str() })
    };
    let (leaves, stays) = (waiting(semel.clone()), waiting(semel.clone()));
    let mut watched = semel.waiting();
    watched.wait_for(|waiting| *waiting == 2).await.unwrap();
    // Past every early read: the next one is a second away.
    tokio::time::sleep(Duration::from_secs(5)).await;
    leaves.abort();
    watched.wait_for(|waiting| *waiting == 1).await.unwrap();
    let settled_at = Instant::now();
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(stays.await.unwrap(), "replay");
    assert!(settled_at.elapsed() < Duration::from_millis(5), "woken by a read, not by the settle");
    assert_eq!(*watched.borrow(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_queues_while_the_last_batch_lands_is_not_forgotten() {
    let Stage { semel, pausing, .. } = stage();
    let claim = |name: &str| {
        let (semel, claim) = (semel.clone(), Claim::new(&key(name)));
        tokio::spawn(async move { semel.claim(claim).await.unwrap().as_str() })
    };
    for round in 0..20 {
        let stops = [pausing.stop_at(Point::AfterSwap), pausing.stop_at(Point::AfterSwap)];
        let first = claim(&format!("{round} first"));
        stops[0].reached().await;
        let second = claim(&format!("{round} second"));
        stops[1].reached().await;
        let before = pausing.count(Call::Swap);
        let queued = claim(&format!("{round} queued"));
        // As far as it goes by itself: behind two batches in flight, nothing more is sent.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert_eq!(pausing.count(Call::Swap), before);
        let [a, b] = stops;
        a.go_on();
        b.go_on();
        let all = async { (first.await.unwrap(), second.await.unwrap(), queued.await.unwrap()) };
        let told = tokio::time::timeout(Duration::from_secs(5), all).await.expect("a swap was forgotten");
        assert_eq!(told, ("run", "run", "run"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_first_reply_was_lost_and_whose_caller_leaves_is_given_back() {
    let Stage { semel, another, pausing } = stage();
    let stop = pausing.stop_at(Point::AfterSwap);
    let claiming = tokio::spawn(async move { semel.claim(Claim::new(&key("1"))).await });
    stop.reached().await;
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy", "the swap took");
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    stop.lose_reply();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(granted(another.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_claim_can_be_asked_again_with_the_permit_id_in_its_error() {
    let Stage { semel, another, pausing } = stage();
    // The give-back of the claim that nobody may hear of is held up, until its caller has asked again.
    let give_back = pausing.stop_at(Point::BeforeLoad);
    for _ in 0..4 {
        let stop = pausing.stop_at(Point::AfterSwap);
        tokio::spawn(async move {
            stop.reached().await;
            stop.lose_reply();
        });
    }
    let error = semel.claim(Claim::new(&key("1"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    give_back.reached().await;
    let permit_id = error.permit_id().expect("an unknown claim names its permit");
    let permit = granted(semel.resume(&key("1"), permit_id).await.unwrap());
    assert_eq!(permit.attempt(), 1, "the first ask was granted, and this is its run");
    give_back.go_on();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        another.claim(Claim::new(&key("1"))).await.unwrap().as_str(),
        "busy",
        "its run was given away"
    );
    permit.complete(outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_races_its_own_complete_has_lost_nothing() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let stop = pausing.stop_at(Point::BeforeSwap);
    let renewing = permit.clone();
    let renewing = tokio::spawn(async move { renewing.renew().await });
    stop.reached().await;
    permit.complete(outcome("paid")).await.unwrap();
    stop.go_on();
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Done);
    assert!(!permit.is_lost());
    assert_eq!(semel.stats().lost, 0);
}

#[tokio::test(start_paused = true)]
async fn what_took_says_so_after_its_reply_was_lost() {
    let Stage { semel, another, pausing } = stage();
    let lose_next = || {
        let stop = pausing.stop_at(Point::AfterSwap);
        tokio::spawn(async move {
            stop.reached().await;
            stop.lose_reply();
        })
    };
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let lost = lose_next();
    assert_eq!(permit.release("gave up").await.unwrap(), ReleaseAnswer::Released);
    lost.await.unwrap();
    assert_eq!(permit.release("gave up").await.unwrap(), ReleaseAnswer::Released, "asked once more");

    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let lost = lose_next();
    assert_eq!(permit.hold("no answer").await.unwrap(), semel::HoldAnswer::Held);
    lost.await.unwrap();

    let lost = lose_next();
    let resolution = Resolution::Release { reason: "it never left".into() };
    assert_eq!(semel.resolve(&key("1"), resolution).await.unwrap(), Resolved::Resolved);
    lost.await.unwrap();
    assert_eq!(granted(another.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_several_keys_goes_on_with_what_its_caller_had_before() {
    let Stage { semel, another, .. } = stage();
    let mut names = ["1", "2", "3"];
    names.sort_by_key(|name| key(name).id());
    let [had, fresh, taken] = names.map(key);
    let before = granted(semel.claim(Claim::new(&had)).await.unwrap());
    granted(another.claim(Claim::new(&taken)).await.unwrap());
    let claims =
        [&had, &fresh, &taken].map(|key| Claim::new(key).permit_id(before.id())).into_iter().collect();
    let ClaimedAll::Refused { key, decision } = semel.claim_all(claims).await.unwrap() else { panic!() };
    assert_eq!((key, decision.as_str()), (taken, "busy"));
    assert_eq!(another.claim(Claim::new(&had)).await.unwrap().as_str(), "busy", "the run was released");
    assert_eq!(
        granted(another.claim(Claim::new(&fresh)).await.unwrap()).attempt(),
        2,
        "what was granted anew"
    );
    before.complete(outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_complete_all_is_mended_by_the_next_claim_all() {
    for lapse in [Lapse::Rerun, Lapse::Hold] {
        for lapsed in [false, true] {
            let Stage { semel, another, .. } = stage();
            let claims =
                || ["1", "2", "3"].map(|name| Claim::new(&key(name)).lapse(lapse)).into_iter().collect();
            let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
            assert!(permits.iter().all(|permit| permit.id() == permits[0].id()), "one permit id for all");
            // One of three, and then the process is gone.
            permits[1].complete(outcome("paid")).await.unwrap();
            if lapsed {
                tokio::time::sleep(LEASE).await;
            }
            let ClaimedAll::Refused { decision, .. } = another.claim_all(claims()).await.unwrap() else {
                panic!("{lapse:?}, lapsed: {lapsed}")
            };
            assert_eq!(replayed(*decision), "paid");
            for name in ["1", "2", "3"] {
                assert_eq!(replayed(another.claim(Claim::new(&key(name))).await.unwrap()), "paid");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_completed_renewed_or_released_in_one_batch() {
    let Stage { semel, another, pausing } = stage();
    let claims = || (0..5).map(|name| Claim::new(&key(&name.to_string()))).collect::<Vec<_>>();
    let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
    let before = pausing.count(Call::Swap);
    assert_eq!(semel.renew_all(&permits).await.unwrap(), [Renewal::Renewed; 5]);
    assert_eq!(semel.release_all(&permits, "later").await.unwrap(), [ReleaseAnswer::Released; 5]);
    assert_eq!(pausing.count(Call::Swap), before + 2);
    let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
    let before = pausing.count(Call::Swap);
    semel.complete_all(&permits, outcome("paid")).await.unwrap();
    assert_eq!(pausing.count(Call::Swap), before + 1);
    semel.complete_all(&permits, outcome("paid")).await.unwrap();
    assert_eq!(replayed(another.claim(Claim::new(&key("3"))).await.unwrap()), "paid");
    assert_eq!(semel.renew_all(&permits).await.unwrap(), [Renewal::Done; 5]);
    let lost = semel.complete_all(&permits, outcome("other")).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_lapsed_run_under_hold_is_held_for_everybody_who_looks() {
    let clock = ManualClock::at(1_000_000_000);
    let Stage { semel, another, .. } =
        stage_over(Arc::new(MemoryStore::builder().clock(clock.clone()).build()));
    let permit = granted(semel.claim(Claim::new(&key("1")).lapse(Lapse::Hold)).await.unwrap());
    let held_only = || semel::store::Scan {
        filter: semel::store::Filter {
            states: vec![semel::record::StateKind::Held],
            ..semel::store::Filter::default()
        },
        limit: 10,
        ..semel::store::Scan::default()
    };
    assert!(another.scan(held_only()).await.unwrap().records.is_empty());
    clock.advance(LEASE);
    let found = another.get(&key("1")).await.unwrap().unwrap();
    let State::Held(held) = &found.state else { panic!("{found:?}") };
    assert_eq!((held.reason.as_str(), held.grant.permit_id), ("lapsed", permit.id()));
    assert_eq!(another.scan(held_only()).await.unwrap().records.len(), 1);
    let settled = another.get_settled(key("1").id(), Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(settled.state, found.state);
    let answer = another.resolve(&key("1"), Resolution::Done(outcome("looked"))).await.unwrap();
    assert_eq!(answer, Resolved::Resolved);
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "looked");
    assert_eq!(permit.complete(outcome("late")).await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_held_after_cannot_tell_is_probed_again() {
    let Stage { semel, another, .. } = stage();
    granted(another.claim(Claim::new(&key("1")).lapse(Lapse::Hold)).await.unwrap());
    tokio::time::sleep(LEASE).await;
    let cannot_tell = Claim::new(&key("1")).probe(|_| std::future::ready(Probed::CannotTell));
    assert_eq!(semel.claim(cannot_tell).await.unwrap().as_str(), "held");
    let landed = || Claim::new(&key("1")).probe(|_| std::future::ready(Probed::Landed(outcome("found"))));
    assert_eq!(semel.claim(landed()).await.unwrap().as_str(), "held", "ten seconds are not over");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(replayed(semel.claim(landed()).await.unwrap()), "found");
}

#[tokio::test]
async fn what_could_never_work_is_refused_by_name() {
    let semel = Semel::new(MemoryStore::new());
    let refused = async |claim: Claim| semel.claim(claim).await.map(drop).unwrap_err();
    let claim = || Claim::new(&key("1"));
    for (claim, field) in [
        (claim().attempts_max(0), "attempts_max"),
        (claim().owner(" "), "owner"),
        (claim().label(&"x".repeat(257)), "label"),
        (claim().lease(Duration::ZERO), "lease"),
    ] {
        let error = refused(claim).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(field), "{error}");
    }
    assert!(matches!(semel.claim(claim().label(&"x".repeat(256))).await.unwrap(), Decision::Run(_)));
}
