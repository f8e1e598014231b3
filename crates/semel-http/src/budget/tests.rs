//! The budget: what finds room, what waits for it, and that all of it comes back.

use http::Request;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::Principal;

const MIB: usize = 1 << 20;

fn caller(name: &str) -> Caller {
    let name = name.to_owned();
    let principal = Principal::function(move |_| Some(name.clone()));
    principal.caller(&Request::new(()).into_parts().0).unwrap()
}

fn held(budget: &MemoryBudget) -> usize {
    budget.held.load(Ordering::SeqCst)
}

fn is_empty(budget: &MemoryBudget) -> bool {
    let counters = budget.callers.rows.iter().flatten();
    held(budget) == 0 && counters.map(|counter| counter.load(Ordering::SeqCst)).sum::<usize>() == 0
}

/// Room for a replay of this length.
fn replay(budget: &Arc<MemoryBudget>, name: &str, bytes: usize) -> Result<Reserved, NoRoom> {
    let mut response = budget.admit(&caller(name))?.response;
    response.take(bytes)?;
    Ok(response)
}

/// Room for the first part of a run's response.
fn run(budget: &Arc<MemoryBudget>, name: &str) -> Reserved {
    budget.admit(&caller(name)).expect("is admitted").response.granted()
}

#[test]
fn room_that_was_given_back_can_be_taken_again() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let first = replay(&budget, "ada", 3 * MIB).unwrap();
    assert_eq!(replay(&budget, "ada", 2 * MIB).err(), Some(NoRoom::ForCaller));
    drop(first);
    let again = replay(&budget, "ada", 3 * MIB).unwrap();
    drop(again);
    assert!(is_empty(&budget));
}

#[test]
fn a_caller_that_fills_its_share_leaves_the_others_theirs() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let unread: Vec<_> = std::iter::from_fn(|| replay(&budget, "eve", MIB).ok()).collect();
    assert_eq!(unread.len(), 4);
    for other in ["ada", "bob"] {
        let others: Vec<_> = std::iter::from_fn(|| replay(&budget, other, MIB).ok()).take(3).collect();
        assert_eq!(others.len(), 3, "{other}");
    }
}

#[test]
fn admissions_leave_a_quarter_to_runs_that_were_granted() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let mut granted = run(&budget, "zoe");
    let names: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let full: Vec<_> = names.iter().filter_map(|name| replay(&budget, name, MIB).ok()).collect();
    assert_eq!(full.len(), 11);
    assert_eq!(replay(&budget, "late", MIB).err(), Some(NoRoom::InAll));
    granted.take(4 * MIB).unwrap();
    assert_eq!(granted.take(MIB + 1), Err(NoRoom::InAll));
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_room_and_takes_what_is_given_back() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let [mut first, mut second, mut third] = ["ada", "bob", "zoe"].map(|name| run(&budget, name));
    first.take(8 * MIB - MIB / 2).unwrap();
    second.take(7 * MIB).unwrap();
    let waits = tokio::spawn(async move { third.take_in_time(2 * MIB).await.map(|()| third) });
    tokio::task::yield_now().await;
    assert_eq!(budget.waiting.load(Ordering::SeqCst), 1);
    drop(first);
    let third = waits.await.unwrap().unwrap();
    drop((second, third));
    assert!(is_empty(&budget));
    assert_eq!(budget.waiting.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_gives_up_on_room_that_does_not_come_and_at_once_on_room_that_cannot() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let [mut first, mut second] = ["ada", "ada"].map(|name| run(&budget, name));
    first.take(8 * MIB - MIB / 2).unwrap();
    let started = tokio::time::Instant::now();
    assert_eq!(second.take_in_time(9 * MIB).await, Err(NoRoom::ForCaller));
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(second.take_in_time(MIB).await, Err(NoRoom::ForCaller));
    assert!(started.elapsed() >= WAIT_FOR_ROOM);
    // An admission does not wait.
    let (started, mut request) = (tokio::time::Instant::now(), budget.admit(&caller("bob")).unwrap().request);
    assert_eq!(request.take_in_time(9 * MIB).await, Err(NoRoom::ForCaller));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[test]
fn bytes_are_counted_until_their_last_reference_is_gone() {
    let budget = MemoryBudget::new(16 * MIB, None);
    let bytes = replay(&budget, "ada", MIB).unwrap().attach(Bytes::from(vec![7; MIB]));
    let part = bytes.slice(10..11);
    drop(bytes);
    assert!(held(&budget) >= MIB, "one byte of them pins them all");
    drop(part);
    assert!(is_empty(&budget));
    // A few bytes count until a connection has them, and no longer.
    let few = replay(&budget, "ada", 10).unwrap();
    assert!(!is_empty(&budget));
    let few = few.attach(Bytes::from_static(b"0123456789"));
    assert!(is_empty(&budget));
    drop(few);
}

#[test]
fn a_small_request_and_its_response_fit_into_their_first_room() {
    let budget = MemoryBudget::new(256 * MIB, None);
    let Admitted { mut request, mut response } = budget.admit(&caller("ada")).unwrap();
    let first = held(&budget);
    assert_eq!(first, FIRST_ROOM_MAX);
    request.take(first / 2).unwrap();
    response.take(first / 2).unwrap();
    assert_eq!(held(&budget), first);
    response.take(1).unwrap();
    assert_eq!(held(&budget), first + 1);
    drop((request, response));
    assert!(is_empty(&budget));
}

#[test]
fn thousands_of_small_requests_fit_whatever_the_budget() {
    for bytes_max in [16 * MIB, 256 * MIB] {
        let budget = MemoryBudget::new(bytes_max, None);
        let admitted: Vec<_> = (0..8_192).filter_map(|_| budget.admit(&caller("ada")).ok()).collect();
        assert_eq!(admitted.len(), 8_192);
    }
}

/// Takes and drops at random, as several callers; returns by how much these bounds were passed at most.
fn overshoot(budget: &Arc<MemoryBudget>, bounds: Limits, seed: u64) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let names: Vec<_> = (0..5).map(|number| caller(&number.to_string())).collect();
    let mut reserved: Vec<(usize, Reserved)> = Vec::new();
    let mut bodies: Vec<(usize, Bytes)> = Vec::new();
    let mut worst = 0;
    for _ in 0..2_000 {
        let who = random.random_range(0..names.len());
        match random.random_range(0..5) {
            0 => {
                if let Ok(Admitted { request, response }) = budget.admit(&names[who]) {
                    reserved.extend([(who, request), (who, response.granted())]);
                }
            }
            1 | 2 if !reserved.is_empty() => {
                let at = random.random_range(0..reserved.len());
                let _ = reserved[at].1.take(random.random_range(0..200_000));
            }
            3 if !reserved.is_empty() => {
                let (who, room) = reserved.swap_remove(random.random_range(0..reserved.len()));
                let length = room.used;
                bodies.push((who, room.attach_always(Bytes::from(vec![0; length]))));
            }
            _ if !bodies.is_empty() => drop(bodies.swap_remove(random.random_range(0..bodies.len()))),
            _ => {}
        }
        let used = |owner: Option<usize>| {
            let is_of = |who: &usize| owner.is_none_or(|owner| owner == *who);
            let rooms = reserved.iter().filter(|(who, _)| is_of(who)).map(|(_, room)| room.used);
            rooms
                .chain(bodies.iter().filter(|(who, _)| is_of(who)).map(|(_, body)| body.len()))
                .sum::<usize>()
        };
        assert!(held(budget) >= used(None), "what is in use is counted");
        worst = worst.max(used(None).saturating_sub(bounds.all));
        worst = worst.max(used(Some(who)).saturating_sub(bounds.caller));
    }
    worst
}

#[test]
fn whatever_callers_do_the_bounds_hold_and_everything_comes_back() {
    let bounds = Limits::new(4 * MIB, Some(MIB));
    for seed in 0..50 {
        let budget = MemoryBudget::new(4 * MIB, Some(MIB));
        assert_eq!(overshoot(&budget, bounds, seed), 0, "seed {seed}");
        assert!(is_empty(&budget), "seed {seed}");
    }
    // Control: the same walk passes each bound if only the other is there.
    for (all, share) in [(4 * MIB, 4 * MIB), (100 * MIB, MIB)] {
        let budget = MemoryBudget::new(all, Some(share));
        assert!((0..50).any(|seed| overshoot(&budget, bounds, seed) > 0), "{all} {share}");
        assert!(is_empty(&budget));
    }
}

#[test]
fn threads_that_take_and_drop_at_once_never_pass_the_bound_on_all() {
    let budget = MemoryBudget::new(MIB, Some(MIB));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let budget = &budget;
            scope.spawn(move || {
                let me = caller(&thread.to_string());
                for number in 0..20_000_usize {
                    if let Ok(Admitted { mut request, response }) = budget.admit(&me) {
                        let _ = request.take(number * 7_919 % 300_000);
                        let mut response = response.granted();
                        let _ = response.take(number * 104_729 % 600_000);
                        assert!(held(budget) <= MIB);
                    }
                }
            });
        }
    });
    assert!(is_empty(&budget));
}
