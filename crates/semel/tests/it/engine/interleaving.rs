//! Two actors in an order that a test forces: what holds only by accident of timing does not hold here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use semel::record::State;
use semel::store::{MemoryStore, Store};
use semel::swap_loop::{Heard, Next};
use semel::{
    Claim, ClaimedAll, Decision, ErrorKind, Lapse, Probed, ReleaseAnswer, Renewal, Resolution, Resolved,
    Semel,
};
use semel_testkit::{Call, ManualClock, PausingStore, Point};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::tokio_clock::TokioClock;
use crate::world::{Remote, follows_a_run_that_was_given_back, granted, key, outcome, replayed};

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
async fn the_verdict_of_a_probe_is_not_used_for_the_same_attempt_of_a_later_life() {
    let Stage { semel, another, .. } = stage();
    let hold = || Claim::new(&key("1")).lapse(Lapse::Hold);
    granted(another.claim(hold()).await.unwrap());
    tokio::time::sleep(LEASE).await;
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, may_answer) = (Arc::clone(&asked), Arc::clone(&go_on));
    let probing = Claim::new(&key("1")).probe(move |found| {
        let (told, may_answer) = (Arc::clone(&told), Arc::clone(&may_answer));
        async move {
            told.notify_one();
            may_answer.notified().await;
            if found.label.is_none() {
                Probed::Landed(outcome("the first life's"))
            } else {
                Probed::CannotTell
            }
        }
    });
    let claiming = tokio::spawn(async move { semel.claim(probing).await });
    asked.notified().await;
    // While the probe looks at the first life, that is settled and forgotten, and the first run of a second one lapses.
    let resolution = Resolution::Done(outcome("looked"));
    assert_eq!(another.resolve(&key("1"), resolution).await.unwrap(), Resolved::Resolved);
    tokio::time::sleep(RETENTION).await;
    assert_eq!(granted(another.claim(hold().label("second life")).await.unwrap()).attempt(), 1);
    tokio::time::sleep(LEASE).await;
    go_on.notify_one();
    let again = tokio::time::timeout(Duration::from_secs(1), asked.notified()).await;
    again.expect("a verdict on another life was used");
    go_on.notify_one();
    assert_eq!(claiming.await.unwrap().unwrap().as_str(), "held");
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
    assert!(follows_a_run_that_was_given_back(&granted(another.claim(Claim::new(&key("1"))).await.unwrap())));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_claim_can_be_asked_again_with_the_permit_id_in_its_error() {
    let Stage { semel, another, pausing } = stage();
    // The give-back of the claim is held up, until its caller has asked again.
    let give_back = pausing.stop_at(Point::BeforeLoad);
    for _ in 0..4 {
        pausing.stop_at(Point::AfterSwap).lose_reply();
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

#[tokio::test(start_paused = true)]
async fn a_settle_between_the_busy_answer_and_the_wait_is_not_missed() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let stop = pausing.stop_at(Point::AfterSwap);
    let waiting = semel.clone();
    let waiting = tokio::spawn(async move { waiting.claim_or_wait(Claim::new(&key("1")), LEASE).await });
    stop.reached().await;
    permit.complete(outcome("paid")).await.unwrap();
    let before = Instant::now();
    stop.go_on();
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert_eq!(before.elapsed(), Duration::ZERO, "the wake was missed, and a later read made up for it");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_runs_once_the_lease_of_the_other_has_lapsed() {
    let Stage { semel, another, .. } = stage();
    let before = Instant::now();
    granted(another.claim(Claim::new(&key("1"))).await.unwrap());
    let permit = granted(semel.claim_or_wait(Claim::new(&key("1")), LEASE * 4).await.unwrap());
    assert_eq!(permit.attempt(), 2);
    assert!((LEASE..LEASE + Duration::from_secs(2)).contains(&before.elapsed()), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_another_processs_outcome_is_kept_from_before_it_was_asked_for() {
    let Stage { semel, another, pausing } = stage();
    let sent_at = Instant::now();
    granted(another.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    let stop = pausing.stop_at(Point::AfterSwap);
    let asking = semel.clone();
    let asking = tokio::spawn(async move { asking.claim(Claim::new(&key("1"))).await });
    stop.reached().await;
    tokio::time::sleep(RETENTION / 2).await;
    stop.go_on();
    assert_eq!(replayed(asking.await.unwrap().unwrap()), "paid");
    tokio::time::sleep_until(sent_at + RETENTION).await;
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_give_back_whose_reply_is_lost_does_not_take_the_next_run_of_the_same_permit() {
    let Stage { semel, another, pausing } = stage();
    for _ in 0..4 {
        pausing.stop_at(Point::AfterSwap).lose_reply();
    }
    // The fifth swap gives the run back. It takes, and its reply is held up.
    let give_back = pausing.stop_at(Point::AfterSwap);
    let error = semel.claim(Claim::new(&key("1"))).await.unwrap_err();
    give_back.reached().await;
    let permit = granted(semel.resume(&key("1"), error.permit_id().unwrap()).await.unwrap());
    assert!(follows_a_run_that_was_given_back(&permit));
    give_back.lose_reply();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        another.claim(Claim::new(&key("1"))).await.unwrap().as_str(),
        "busy",
        "its run was given away"
    );
    permit.complete(outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_is_kept_after_the_run_is_done_asks_at_most_once_more() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let _heartbeat = permit.heartbeat();
    tokio::time::sleep(LEASE).await;
    permit.complete(outcome("paid")).await.unwrap();
    pausing.forget_calls();
    tokio::time::sleep(LEASE * 10).await;
    assert!(pausing.calls().len() <= 2, "{:?}", pausing.calls());
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_of_a_run_that_was_taken_over_asks_at_most_once_more() {
    let Stage { semel, another, pausing } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let _heartbeat = permit.heartbeat();
    let shown = another.get(&key("1")).await.unwrap().unwrap();
    another.release_shown(&shown, "stuck", None).await.unwrap();
    pausing.forget_calls();
    permit.lost().await;
    tokio::time::sleep(LEASE * 10).await;
    assert!(pausing.calls().len() <= 2, "{:?}", pausing.calls());
    assert_eq!(semel.stats().lost, 1);
}

/// Whether a task waits for more than time, on a clock that moves on by itself once everything else waits.
async fn is_pending<T>(task: &mut tokio::task::JoinHandle<T>) -> bool {
    tokio::time::timeout(Duration::from_secs(1), task).await.is_err()
}

/// Lets every other task go as far as it can by itself.
async fn settle_down() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_is_in_flight_and_for_what_is_queued_behind_it() {
    let Stage { semel, pausing, .. } = stage();
    let stops = [pausing.stop_at(Point::AfterSwap), pausing.stop_at(Point::AfterSwap)];
    let claim = |name: &str| {
        let (semel, claim) = (semel.clone(), Claim::new(&key(name)));
        tokio::spawn(async move { semel.claim(claim).await })
    };
    let first = claim("1");
    stops[0].reached().await;
    let second = claim("2");
    stops[1].reached().await;
    let closing = semel.clone();
    let mut closing = tokio::spawn(async move { closing.close().await });
    assert!(is_pending(&mut closing).await, "two swaps are on their way");
    let [one, two] = stops;
    one.go_on();
    assert_eq!(first.await.unwrap().unwrap().as_str(), "run");
    assert!(is_pending(&mut closing).await, "one swap is on its way");
    two.go_on();
    assert_eq!(second.await.unwrap().unwrap().as_str(), "run");
    tokio::time::timeout(Duration::from_secs(5), closing).await.expect("nothing is left").unwrap().unwrap();
}

/// Two claims whose swaps the store has answered and their callers do not know yet: what comes now queues behind them.
async fn two_on_their_way(stage: &Stage) -> [semel_testkit::Stop; 2] {
    let stops = [stage.pausing.stop_at(Point::AfterSwap), stage.pausing.stop_at(Point::AfterSwap)];
    for (stop, name) in stops.iter().zip(["first on its way", "second on its way"]) {
        let semel = stage.semel.clone();
        tokio::spawn(async move { semel.claim(Claim::new(&key(name))).await.map(drop) });
        stop.reached().await;
    }
    stops
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_last_swap_though_a_large_batch_landed_before_it() {
    let stage = stage();
    let [first, second] = two_on_their_way(&stage).await;
    let large = stage.pausing.stop_at(Point::AfterSwap);
    let riders: Vec<_> = (0..5)
        .map(|name| {
            let semel = stage.semel.clone();
            tokio::spawn(async move { semel.claim(Claim::new(&key(&name.to_string()))).await.map(drop) })
        })
        .collect();
    settle_down().await;
    first.go_on();
    assert_eq!(large.reached().await.len(), 5);
    large.go_on();
    for rider in riders {
        rider.await.unwrap().unwrap();
    }
    let closing = stage.semel.clone();
    let mut closing = tokio::spawn(async move { closing.close().await });
    assert!(is_pending(&mut closing).await, "one swap is on its way");
    second.go_on();
    tokio::time::timeout(Duration::from_secs(5), closing).await.expect("nothing is left").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_caller_of_a_batch_hears_the_answer_to_its_own_ask() {
    let stage = stage();
    let Stage { semel, another, pausing } = &stage;
    for name in ["a", "b"] {
        granted(another.claim(Claim::new(&key(name))).await.unwrap()).complete(outcome(name)).await.unwrap();
    }
    granted(another.claim(Claim::new(&key("c"))).await.unwrap());
    let [first, second] = two_on_their_way(&stage).await;
    let riders: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|name| {
            let semel = semel.clone();
            tokio::spawn(async move { (name, semel.claim(Claim::new(&key(name))).await.unwrap()) })
        })
        .into();
    settle_down().await;
    first.go_on();
    second.go_on();
    for rider in riders {
        let (name, decision) = rider.await.unwrap();
        match (name, decision) {
            ("a" | "b", decision) => assert_eq!(replayed(decision), name),
            ("c", Decision::Busy(busy)) => {
                assert_eq!((busy.owner(), busy.record().key.name()), ("another", "c"));
            }
            ("d" | "e", decision) => {
                let permit = granted(decision);
                assert_eq!(permit.key(), &key(name));
                let record = another.get(permit.key()).await.unwrap().unwrap();
                assert_eq!(
                    (permit.id(), permit.fence()),
                    (record.state.grant().permit_id, record.version.get())
                );
            }
            (name, decision) => panic!("{name} was told {}", decision.as_str()),
        }
    }
    assert!(pausing.batches(Call::Swap).iter().any(|batch| batch.len() == 5), "they rode together");
}

#[tokio::test(start_paused = true)]
async fn the_replay_cache_counts_from_before_several_were_completed_together() {
    let Stage { semel, pausing, .. } = stage();
    let claims = || ["1", "2"].map(|name| Claim::new(&key(name))).into_iter().collect();
    let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
    let stop = pausing.stop_at(Point::AfterSwap);
    let sent_at = Instant::now();
    let completing = semel.clone();
    let completing = tokio::spawn(async move { completing.complete_all(&permits, outcome("paid")).await });
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
async fn a_caller_that_was_woken_in_vain_is_woken_again() {
    let Stage { semel, pausing, .. } = stage();
    let first = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let waiting = semel.clone();
    let waiting = tokio::spawn(async move { waiting.claim_or_wait(Claim::new(&key("1")), LEASE).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    // So that the release is one swap: counts of duplicates were written since the claim.
    first.renew().await.unwrap();
    // The release is the first swap from here on; the waiting caller's claim, which it wakes, the second.
    let stop = pausing.stop_at(Point::BeforeSwap.nth(2));
    first.release("gave up").await.unwrap();
    stop.reached().await;
    let second = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    stop.go_on();
    // Past every early read: the next one is a second away.
    tokio::time::sleep(Duration::from_millis(5_001)).await;
    let settled_at = Instant::now();
    second.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert!(settled_at.elapsed() < Duration::from_millis(5), "woken by a read, not by the settle");
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_sweep_that_goes_on() {
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let semel = Semel::builder(pausing.clone()).sweep_every(Duration::from_secs(1)).build().unwrap();
    let stop = pausing.stop_at(Point::BeforeSweep);
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    stop.reached().await;
    let closing = semel.clone();
    let mut closing = tokio::spawn(async move { closing.close().await });
    assert!(is_pending(&mut closing).await, "a sweep is on its way");
    stop.go_on();
    tokio::time::timeout(Duration::from_secs(5), closing).await.expect("it is over").unwrap().unwrap();
    let swept = pausing.count(Call::Sweep);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(pausing.count(Call::Sweep), swept, "a closed engine sweeps no more");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_dropped_leaves_no_task_behind() {
    let Stage { semel, another, pausing } = stage();
    // An answer that does not come at once is waited for by a task.
    let stop = pausing.stop_at(Point::AfterSwap);
    let going_on = tokio::spawn(async move {
        stop.reached().await;
        stop.go_on();
    });
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    going_on.await.unwrap();
    drop(permit.heartbeat());
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    settle_down().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    assert_ne!(metrics.num_alive_tasks(), 0, "the engines have tasks");
    drop((permit, semel, another));
    settle_down().await;
    assert_eq!(metrics.num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_when_a_claim_is_given_back_whose_caller_is_gone() {
    let Stage { semel, another, pausing } = stage();
    let stop = pausing.stop_at(Point::AfterSwap);
    let claiming = semel.clone();
    let claiming = tokio::spawn(async move { claiming.claim(Claim::new(&key("1"))).await });
    stop.reached().await;
    let waiting = semel.clone();
    let waiting = tokio::spawn(async move { waiting.claim_or_wait(Claim::new(&key("1")), LEASE).await });
    // Past every early read: the next one is a second away.
    tokio::time::sleep(Duration::from_millis(5_001)).await;
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    let before = Instant::now();
    stop.go_on();
    assert!(follows_a_run_that_was_given_back(&granted(waiting.await.unwrap().unwrap())));
    assert!(before.elapsed() < Duration::from_millis(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_when_a_claim_of_several_keys_mends_what_a_crash_left() {
    let Stage { semel, another, .. } = stage();
    let claims = || ["1", "2"].map(|name| Claim::new(&key(name))).into_iter().collect();
    let ClaimedAll::Run(permits) = another.claim_all(claims()).await.unwrap() else { panic!() };
    permits[0].complete(outcome("paid")).await.unwrap();
    let waiting = semel.clone();
    let waiting = tokio::spawn(async move { waiting.claim_or_wait(Claim::new(&key("2")), LEASE).await });
    tokio::time::sleep(Duration::from_millis(5_001)).await;
    let before = Instant::now();
    assert!(matches!(semel.claim_all(claims()).await.unwrap(), ClaimedAll::Refused { .. }));
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert!(before.elapsed() < Duration::from_millis(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_inside_a_transaction_is_not_kept_in_memory() {
    let Stage { semel, another, pausing } = stage();
    granted(another.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    let asking = semel.record_once_loop(&Claim::new(&key("1")), outcome("again"));
    let mut asking = asking.unwrap();
    let store = Remote::new(Arc::new(pausing.clone()));
    let settled = loop {
        match asking.next().unwrap() {
            Next::Load(id) => asking.hear(Heard::loaded(store.load(vec![id]).await)).unwrap(),
            Next::Swap(swap) => asking.hear(Heard::swapped(store.swap([swap].into()).await)).unwrap(),
            Next::Pause(_) => panic!("nothing was lost"),
            Next::Answer(settled) => break settled,
        }
    };
    assert_eq!(settled.caching, semel::store::Caching::Allowed, "by the store");
    assert!(matches!(semel.recorded(settled).unwrap(), semel::RecordedOnce::Replay(_)));
    let asked = pausing.count(Call::Swap);
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    assert_eq!(pausing.count(Call::Swap), asked + 1, "a transaction may be rolled back: the store is asked");
}

/// A store whose loads and pages hand out what is past its time, as one may that does not look before it answers.
struct Late(Arc<dyn Store>);

impl Store for Late {
    fn load(&self, ids: Vec<semel::RecordId>) -> semel::store::Reply<Vec<semel::store::Loaded>> {
        let reply = self.0.load(ids);
        semel::store::Reply::later(async move {
            let answer = reply.await?;
            Ok(semel::store::Answer::new(answer.now.plus(RETENTION), answer.value))
        })
    }

    fn scan(&self, scan: semel::store::Scan) -> semel::store::Reply<semel::store::Page> {
        let reply = self.0.scan(scan);
        semel::store::Reply::later(async move {
            let answer = reply.await?;
            Ok(semel::store::Answer::new(answer.now.plus(RETENTION), answer.value))
        })
    }

    semel_testkit::delegate!(0: swap, sweep);
}

#[tokio::test]
async fn what_a_store_hands_out_past_its_time_is_not_shown() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let build = |builder: semel::SemelBuilder| builder.retention(RETENTION).build().unwrap();
    let (semel, late) =
        (build(Semel::builder_shared(Arc::clone(&memory))), build(Semel::builder(Late(memory))));
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert!(semel.get(&key("1")).await.unwrap().is_some());
    assert!(late.get(&key("1")).await.unwrap().is_none());
    assert!(late.get_settled(key("1").id(), Duration::ZERO).await.unwrap().is_none());
    let all = || semel::store::Scan { limit: 10, ..semel::store::Scan::default() };
    assert_eq!(semel.scan(all()).await.unwrap().records.len(), 1);
    assert_eq!(late.scan(all()).await.unwrap().records.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_several_that_are_completed_together_one_that_is_lost_is_reported_wherever_it_stands() {
    for lost in ["1", "2", "3"] {
        let Stage { semel, another, .. } = stage();
        let claims = || ["1", "2", "3"].map(|name| Claim::new(&key(name))).into_iter().collect();
        let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
        let shown = another.get(&key(lost)).await.unwrap().unwrap();
        another.release_shown(&shown, "stuck", None).await.unwrap();
        let error = semel.complete_all(&permits, outcome("paid")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost, "{lost} of three");
        for name in ["1", "2", "3"].into_iter().filter(|name| *name != lost) {
            assert_eq!(replayed(another.claim(Claim::new(&key(name))).await.unwrap()), "paid");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_several_renewals_counts_from_before_they_were_sent() {
    let Stage { semel, pausing, .. } = stage();
    let claims = ["1", "2"].map(|name| Claim::new(&key(name))).into_iter().collect();
    let ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
    tokio::time::sleep(LEASE / 2).await;
    let stop = pausing.stop_at(Point::AfterSwap);
    let (sent_at, renewing) = (Instant::now(), permits.clone());
    let renewing = tokio::spawn(async move { semel.renew_all(&renewing).await });
    stop.reached().await;
    tokio::time::sleep(LEASE / 3).await;
    stop.go_on();
    assert_eq!(renewing.await.unwrap().unwrap(), [Renewal::Renewed; 2]);
    permits[0].lost().await;
    assert_eq!(sent_at.elapsed(), LEASE, "a slow reply stretched the lease");
}

#[tokio::test(start_paused = true)]
async fn an_engine_whose_counts_cannot_be_written_says_so_and_is_closed_all_the_same() {
    let Stage { semel, pausing, .. } = stage();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    let stop = pausing.stop_at(Point::BeforeLoad);
    let closing = semel.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    stop.reached().await;
    stop.refuse();
    assert_eq!(closing.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    let refused = semel.claim(Claim::new(&key("2"))).await.unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
}

#[tokio::test]
async fn what_was_done_in_an_earlier_life_mends_nothing() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let build = |builder: semel::SemelBuilder| builder.retention(RETENTION).build().unwrap();
    let (semel, late) =
        (build(Semel::builder_shared(Arc::clone(&memory))), build(Semel::builder(Late(memory))));
    let claims = || ["1", "2"].map(|name| Claim::new(&key(name)).lease(RETENTION * 3)).into_iter().collect();
    let ClaimedAll::Run(permits) = semel.claim_all(claims()).await.unwrap() else { panic!() };
    permits[0].complete(outcome("paid")).await.unwrap();
    // To this one the first record is past its retention, and the second still runs.
    drop(late.claim_all(claims()).await.unwrap());
    let second = semel.get(permits[1].key()).await.unwrap().unwrap();
    assert!(matches!(second.state, State::Running(_)), "{:?}", second.state);
}

#[test]
fn a_heartbeat_goes_on_after_the_runtime_that_began_it_has_ended() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let first = runtime();
    let (stage, permit, heartbeat) = first.block_on(async {
        let stage = stage();
        let permit = granted(stage.semel.claim(Claim::new(&key("1"))).await.unwrap());
        let heartbeat = permit.heartbeat();
        tokio::task::yield_now().await;
        (stage, permit, heartbeat)
    });
    drop(first);
    let Stage { semel, another, .. } = stage;
    runtime().block_on(async {
        // Any call on the engine takes it up again.
        granted(semel.claim(Claim::new(&key("2"))).await.unwrap());
        tokio::time::sleep(LEASE * 3).await;
        assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
        drop(heartbeat);
        tokio::time::sleep(LEASE * 2).await;
        assert_eq!(granted(another.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 2);
        assert!(permit.is_lost());
    });
}

#[test]
fn a_heartbeat_that_began_outside_a_runtime_is_taken_up_by_the_next_call() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (stage, permit) = runtime.block_on(async {
        let stage = stage();
        let permit = granted(stage.semel.claim(Claim::new(&key("1"))).await.unwrap());
        (stage, permit)
    });
    let heartbeat = permit.heartbeat();
    runtime.block_on(async {
        granted(stage.semel.claim(Claim::new(&key("2"))).await.unwrap());
        tokio::time::sleep(LEASE * 3).await;
        assert_eq!(stage.another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
        drop(heartbeat);
    });
}

#[tokio::test(start_paused = true)]
async fn an_operator_does_not_release_a_later_run_under_the_same_permit_id() {
    let Stage { semel, another, .. } = stage();
    let own = || Claim::new(&key("1")).permit_id(semel::record::PermitId::new(7));
    let first = granted(semel.claim(own()).await.unwrap());
    let shown = another.get(&key("1")).await.unwrap().unwrap();
    first.release("later").await.unwrap();
    let second = granted(semel.claim(own()).await.unwrap());
    let answer = another.release_shown(&shown, "stuck", Some(shown.version.get())).await.unwrap();
    assert_eq!(answer, semel::OperatorAnswer::Changed);
    second.complete(outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operators_action_that_took_says_so_after_its_reply_was_lost() {
    let Stage { semel, another, pausing } = stage();
    granted(another.claim(Claim::new(&key("1"))).await.unwrap());
    let shown = another.get(&key("1")).await.unwrap().unwrap();
    let stop = pausing.stop_at(Point::AfterSwap);
    let lost = tokio::spawn(async move {
        stop.reached().await;
        stop.lose_reply();
    });
    let answer = semel.release_shown(&shown, "stuck", Some(shown.version.get())).await.unwrap();
    assert_eq!(answer, semel::OperatorAnswer::Released);
    lost.await.unwrap();
    assert_eq!(granted(another.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_replies_were_all_lost_and_whose_caller_leaves_is_given_back() {
    let Stage { semel, another, pausing } = stage();
    let stops: Vec<_> = (0..4).map(|_| pausing.stop_at(Point::AfterSwap)).collect();
    let claiming = tokio::spawn(async move { semel.claim(Claim::new(&key("1"))).await });
    stops[0].reached().await;
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    for stop in stops {
        stop.reached().await;
        stop.lose_reply();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(follows_a_run_that_was_given_back(&granted(another.claim(Claim::new(&key("1"))).await.unwrap())));
}

#[tokio::test(start_paused = true)]
async fn several_asks_at_once_pause_after_a_lost_reply_as_one_does() {
    let Stage { semel, another, pausing } = stage();
    let claims = ["1", "2"].map(|name| Claim::new(&key(name))).into_iter().collect();
    let ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
    let stops: Vec<_> = (0..3).map(|_| pausing.stop_at(Point::AfterSwap)).collect();
    let losing = tokio::spawn(async move {
        for stop in stops {
            stop.reached().await;
            stop.lose_reply();
        }
    });
    let before = Instant::now();
    semel.complete_all(&permits, outcome("paid")).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_millis(5 + 50 + 250));
    losing.await.unwrap();
    assert_eq!(replayed(another.claim(Claim::new(&key("2"))).await.unwrap()), "paid");
}

#[tokio::test(start_paused = true)]
async fn a_closed_engine_starts_nothing_again() {
    let Stage { semel, another, .. } = stage();
    drop(another);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    semel.close().await.unwrap();
    assert_eq!(permit.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    let _heartbeat = permit.heartbeat();
    drop(semel.sweep_reports());
    settle_down().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_whose_renewal_failed_tries_again() {
    let Stage { semel, another, pausing } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let _heartbeat = permit.heartbeat();
    let stop = pausing.stop_at(Point::BeforeSwap);
    stop.reached().await;
    stop.refuse();
    tokio::time::sleep(LEASE * 2).await;
    assert!(!permit.is_lost());
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
}

#[tokio::test(start_paused = true)]
async fn a_record_once_with_a_probe_leaves_the_probing_to_claims() {
    let Stage { semel, another, .. } = stage();
    granted(another.claim(Claim::new(&key("1")).lapse(Lapse::Hold)).await.unwrap());
    tokio::time::sleep(LEASE).await;
    let probing = || Claim::new(&key("1")).probe(|_| std::future::ready(Probed::Landed(outcome("found"))));
    let told = semel.record_once(probing(), outcome("mine")).await.unwrap();
    assert!(matches!(told, semel::RecordedOnce::Held(_)), "{told:?}");
    let mut asking = semel.record_once_loop(&probing(), outcome("mine")).unwrap();
    let found = another.get(&key("1")).await.unwrap().unwrap();
    let (now, found) = (found.changed_at.plus(LEASE), Arc::new(found));
    assert!(matches!(asking.next().unwrap(), Next::Swap(_)));
    let stale = semel::store::SwapReply::Stale(Some(found));
    asking.hear(Heard::Swapped(Ok(semel::store::Answer::new(now, stale)))).unwrap();
    assert!(matches!(asking.next().unwrap(), Next::Answer(_)), "it has nothing to write");
    assert_eq!(replayed(semel.claim(probing()).await.unwrap()), "found", "its turn was used up");
}

/// A store that cannot read one of its records.
struct OneDamaged(Arc<dyn Store>, semel::RecordId);

impl Store for OneDamaged {
    fn load(&self, ids: Vec<semel::RecordId>) -> semel::store::Reply<Vec<semel::store::Loaded>> {
        let damaged: Vec<_> = ids.iter().map(|id| *id == self.1).collect();
        let reply = self.0.load(ids);
        semel::store::Reply::later(async move {
            let answer = reply.await?;
            let loaded = answer.value.into_iter().zip(damaged).map(|(one, is_damaged)| {
                if is_damaged { Err(semel::Error::new(ErrorKind::Corrupt, "unreadable")) } else { one }
            });
            Ok(semel::store::Answer::new(answer.now, loaded.collect()))
        })
    }

    semel_testkit::delegate!(0: swap, sweep, scan);
}

#[tokio::test]
async fn of_several_records_that_are_read_one_that_is_damaged_is_the_only_error() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let writing = Semel::builder_shared(Arc::clone(&store)).no_sweep().build().unwrap();
    let keys = ["1", "2", "3"].map(key);
    for key in &keys {
        granted(writing.claim(Claim::new(key)).await.unwrap());
    }
    let semel = Semel::builder(OneDamaged(store, keys[1].id())).no_sweep().build().unwrap();
    let found = semel.get_all(&keys).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|one| one.map(|record| record.unwrap().key)).collect();
    assert_eq!(found[0].as_ref().unwrap(), &keys[0]);
    assert_eq!(found[1].as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(found[2].as_ref().unwrap(), &keys[2]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_whose_renewal_failed_tries_again_long_before_the_lease_ends() {
    let Stage { semel, pausing, .. } = stage();
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let _heartbeat = permit.heartbeat();
    let stop = pausing.stop_at(Point::BeforeSwap);
    stop.reached().await;
    let (refused_at, next) = (Instant::now(), pausing.stop_at(Point::BeforeSwap));
    stop.refuse();
    next.reached().await;
    assert!(refused_at.elapsed() <= LEASE / 20, "{:?} after the refusal", refused_at.elapsed());
    next.go_on();
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_round_of_sweeping_after_the_batch_that_is_on_its_way() {
    let clock = ManualClock::at(1_000_000);
    let pausing = PausingStore::new(Arc::new(MemoryStore::builder().clock(clock.clone()).build()));
    let semel = Semel::builder(pausing.clone()).sweep_batch(1).build().unwrap();
    let stop = pausing.stop_at(Point::BeforeSweep);
    for name in ["1", "2", "3", "4"] {
        granted(semel.claim(Claim::new(&key(name))).await.unwrap());
    }
    clock.advance(Duration::from_hours(24 * 7));
    stop.reached().await;
    let closing = semel.clone();
    let mut closing = tokio::spawn(async move { closing.close().await });
    assert!(is_pending(&mut closing).await, "a sweep is on its way");
    stop.go_on();
    closing.await.unwrap().unwrap();
    assert_eq!(pausing.count(Call::Sweep), 1, "three more records could have been swept");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_found_nothing_reports_the_batch_that_it_asked_for() {
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let semel = Semel::builder(pausing.clone()).build().unwrap();
    let mut reports = semel.sweep_reports();
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.round, report.removed, report.batches), (1, 0, 1));
    assert_eq!(pausing.count(Call::Sweep), 1);
}

#[tokio::test(start_paused = true)]
async fn counts_are_written_in_small_batches() {
    let Stage { semel, pausing, .. } = stage();
    for name in 0..100 {
        let key = key(&name.to_string());
        granted(semel.claim(Claim::new(&key)).await.unwrap()).complete(outcome("paid")).await.unwrap();
        assert_eq!(semel.claim(Claim::new(&key)).await.unwrap().as_str(), "replay");
    }
    let largest = || pausing.batches(Call::Load).iter().map(Vec::len).max().unwrap_or_default();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!((1..=32).contains(&largest()), "{} records were loaded at once", largest());
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_the_counts_that_another_flush_has_in_hand() {
    let Stage { semel, pausing, .. } = stage();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    let stop = pausing.stop_at(Point::BeforeSwap);
    let flush = || {
        let semel = semel.clone();
        tokio::spawn(async move { semel.flush().await })
    };
    let first = flush();
    stop.reached().await;
    let mut second = flush();
    assert!(is_pending(&mut second).await, "the count is not written yet");
    stop.go_on();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_flush_whose_caller_left_still_writes_what_it_took() {
    let Stage { semel, another, pausing } = stage();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    let stop = pausing.stop_at(Point::BeforeLoad);
    let flushing = semel.clone();
    let flushing = tokio::spawn(async move { flushing.flush().await });
    stop.reached().await;
    flushing.abort();
    assert!(flushing.await.unwrap_err().is_cancelled());
    stop.go_on();
    semel.flush().await.unwrap();
    assert_eq!(another.get(&key("1")).await.unwrap().unwrap().duplicates.count, 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_waits_to_be_closed_takes_no_more_asks() {
    let Stage { semel, pausing, .. } = stage();
    let stop = pausing.stop_at(Point::AfterSwap);
    let claiming = semel.clone();
    let claiming = tokio::spawn(async move { claiming.claim(Claim::new(&key("1"))).await });
    stop.reached().await;
    let closing = semel.clone();
    let mut closing = tokio::spawn(async move { closing.close().await });
    assert!(is_pending(&mut closing).await, "a swap is on its way");
    let refused = semel.claim(Claim::new(&key("2"))).await.unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
    stop.go_on();
    assert_eq!(claiming.await.unwrap().unwrap().as_str(), "run");
    closing.await.unwrap().unwrap();
}
