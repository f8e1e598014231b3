//! The memory store's bound: it holds, and nothing that was promised is forgotten at it.

use std::time::Duration;

use semel::machine::offset::{Move, Moved};
use semel::store::{Loaded, MemoryStore, Reply, Store, SwapReplies, SwapReply, Swaps};
use semel::{Claim, Decision, ErrorKind, Outcome, RecordedOnce, Semel};
use semel_testkit::ManualClock;
use std::sync::Arc;

use crate::world::{LEASE, RETENTION, granted, key, outcome};

fn bounded(
    choose: impl FnOnce(semel::store::MemoryStoreBuilder) -> semel::store::MemoryStoreBuilder,
) -> (Semel, Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::at(1_000_000_000);
    let store = Arc::new(choose(MemoryStore::builder().clock(clock.clone())).build());
    (Semel::builder_shared(store.clone()).build().unwrap(), store, clock)
}

async fn record(semel: &Semel, name: usize) -> semel::Result<RecordedOnce> {
    semel.record_once(Claim::new(&key(&name.to_string())), outcome("paid")).await
}

#[tokio::test]
async fn at_its_bound_of_records_it_refuses_new_claims_and_settles_old_ones() {
    let (semel, store, _) = bounded(|builder| builder.records_max(100));
    let mut permits = Vec::new();
    for name in 0..100 {
        permits.push(granted(semel.claim(Claim::new(&key(&name.to_string()))).await.unwrap()));
    }
    for _ in 0..10 {
        let refused = semel.claim(Claim::new(&key("new"))).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Full);
        assert!(refused.to_string().contains("sweep"), "{refused}");
    }
    assert_eq!(store.records(), 100);
    for permit in &permits {
        permit.complete(outcome("paid")).await.unwrap();
    }
    assert!(matches!(semel.claim(Claim::new(&key("0"))).await.unwrap(), Decision::Replay(_)));
}

#[tokio::test]
async fn at_its_bound_of_bytes_it_refuses_new_claims_and_still_takes_outcomes() {
    let (semel, store, _) = bounded(|builder| builder.bytes_max(64 << 10));
    let mut permits = Vec::new();
    while let Ok(decision) = semel.claim(Claim::new(&key(&permits.len().to_string()))).await {
        permits.push(granted(decision));
    }
    assert!(store.bytes() <= 64 << 10);
    assert!(permits.len() > 100, "{}", permits.len());
    let large = Outcome::success(vec![7; 10 << 10]);
    permits[0].complete(large).await.unwrap();
    assert!(store.bytes() > 64 << 10, "what a running caller brings home is never refused");
    let refused = semel.claim(Claim::new(&key("new"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
}

#[tokio::test]
async fn at_its_bound_it_makes_room_of_what_is_past_its_keep() {
    let (semel, store, clock) = bounded(|builder| builder.records_max(100));
    for name in 0..100 {
        drop(record(&semel, name).await.unwrap());
    }
    clock.advance(RETENTION);
    for name in 100..200 {
        assert!(matches!(record(&semel, name).await.unwrap(), RecordedOnce::Recorded(_)));
        assert!(store.records() <= 100);
    }
    assert_eq!(record(&semel, 200).await.unwrap_err().kind(), ErrorKind::Full);
}

#[tokio::test]
async fn forgetting_the_oldest_gives_up_done_records_of_that_age_and_counts_them() {
    let min_age = Duration::from_mins(10);
    let (semel, store, clock) = bounded(|builder| builder.records_max(100).forget_oldest(min_age));
    let running = granted(semel.claim(Claim::new(&key("running")).lease(RETENTION)).await.unwrap());
    for name in 0..99 {
        drop(record(&semel, name).await.unwrap());
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(record(&semel, 1_000).await.unwrap_err().kind(), ErrorKind::Full, "none is old enough");
    clock.advance(min_age);
    for name in 1_000..1_050 {
        drop(record(&semel, name).await.unwrap());
        assert!(store.records() <= 100);
    }
    assert_eq!(store.forgotten(), 50);
    for name in 0..99 {
        let known = semel.get(&key(&name.to_string())).await.unwrap();
        assert_eq!(known.is_some(), name >= 50, "the oldest go first: {name}");
    }
    running.complete(outcome("paid")).await.unwrap();
}

#[tokio::test]
async fn running_and_held_records_are_never_dropped() {
    let (semel, store, clock) = bounded(|builder| builder.records_max(64).forget_oldest(Duration::ZERO));
    let claim = |name: usize| Claim::new(&key(&name.to_string())).lapse(semel::Lapse::Hold);
    for name in 0..64 {
        granted(semel.claim(claim(name)).await.unwrap());
    }
    clock.advance(LEASE);
    for name in 0..32 {
        assert!(matches!(semel.claim(claim(name)).await.unwrap(), Decision::Held(_)));
    }
    clock.advance(RETENTION * 1_000);
    assert_eq!(semel.claim(claim(64)).await.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!((store.records(), store.forgotten()), (64, 0));
    assert_eq!(semel.sweep(1_000).await.unwrap().removed, 0);
}

#[tokio::test]
async fn the_bound_holds_under_many_threads() {
    let store = Arc::new(MemoryStore::builder().records_max(1_000).build());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let semel = semel.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    let mut taken = 0;
                    for name in 0..1_000 {
                        taken += usize::from(record(&semel, thread * 1_000 + name).await.is_ok());
                    }
                    taken
                })
            })
        })
        .collect();
    let taken: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!((taken, store.records()), (1_000, 1_000));
}

/// Keys whose records lie behind one lock, and are found by one look.
fn neighbours(count: usize) -> Vec<semel::Key> {
    let names = (0..).map(|name: u32| key(&name.to_string()));
    names.filter(|key| key.id().as_bytes()[0] >> 1 == 0).take(count).collect()
}

#[tokio::test]
async fn the_next_life_of_a_key_takes_the_room_of_the_one_before() {
    let (semel, store, clock) = bounded(|builder| builder.records_max(2));
    for _ in 0..5 {
        drop(record(&semel, 1).await.unwrap());
        clock.advance(RETENTION);
    }
    let used = (store.records(), store.bytes());
    let (fresh, other, _) = bounded(|builder| builder);
    drop(record(&fresh, 1).await.unwrap());
    assert_eq!(used, (other.records(), other.bytes()), "five lives take as much as one");
    clock.advance(RETENTION);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!((store.records(), store.bytes()), (0, 0));
}

#[tokio::test]
async fn whatever_a_record_went_through_its_room_is_given_back_in_full() {
    let (semel, store, clock) = bounded(|builder| builder);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    permit.put_step("charge", vec![7; 4_096]).await.unwrap();
    let large = store.bytes();
    assert!(large > 4_096, "a record that grew takes more");
    permit.complete(outcome("paid")).await.unwrap();
    assert!(store.bytes() < large - 4_000, "a record that shrank takes less");
    clock.advance(RETENTION);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!((store.records(), store.bytes()), (0, 0));
}

#[tokio::test]
async fn a_claim_that_is_refused_for_its_bytes_takes_no_room() {
    let (semel, store, _) = bounded(|builder| builder.records_max(100).bytes_max(64));
    for name in 0..200 {
        assert_eq!(record(&semel, name).await.unwrap_err().kind(), ErrorKind::Full);
    }
    assert_eq!((store.records(), store.bytes()), (0, 0));
}

#[tokio::test]
async fn the_bound_of_bytes_is_exact() {
    let (semel, store, _) = bounded(|builder| builder);
    drop(record(&semel, 1).await.unwrap());
    let cost = store.bytes();
    for (bytes_max, is_taken) in [(cost, true), (cost - 1, false)] {
        let (semel, ..) = bounded(|builder| builder.bytes_max(bytes_max));
        assert_eq!(record(&semel, 1).await.is_ok(), is_taken, "{bytes_max} of {cost} bytes");
    }
}

#[tokio::test]
async fn a_running_record_in_front_does_not_keep_done_ones_from_being_forgotten() {
    let (semel, store, clock) =
        bounded(|builder| builder.records_max(3).forget_oldest(Duration::from_secs(1)));
    let keys = neighbours(5);
    granted(semel.claim(Claim::new(&keys[0]).lease(RETENTION)).await.unwrap());
    for key in &keys[1..] {
        drop(semel.record_once(Claim::new(key), outcome("paid")).await.unwrap());
        clock.advance(Duration::from_mins(1));
    }
    assert_eq!((store.records(), store.forgotten()), (3, 2));
}

#[tokio::test]
async fn a_sweep_says_whether_more_is_left_also_behind_one_lock() {
    let (semel, _, clock) = bounded(|builder| builder);
    for (limit, swept) in
        [(2, vec![(2, true), (1, false)]), (3, vec![(3, false)]), (9, vec![(3, false), (0, false)])]
    {
        for key in neighbours(3) {
            drop(semel.record_once(Claim::new(&key), outcome("paid")).await.unwrap());
        }
        clock.advance(RETENTION);
        for expected in swept {
            let swept = semel.sweep(limit).await.unwrap();
            assert_eq!((swept.removed, swept.more_left), expected, "limit {limit}");
        }
    }
}

#[tokio::test]
async fn a_record_that_a_sweep_found_still_kept_is_swept_in_its_time() {
    let (semel, store, clock) = bounded(|builder| builder);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    clock.advance(LEASE / 2);
    permit.complete(outcome("paid")).await.unwrap();
    // The first look is due from the claim on, and comes too early.
    clock.advance(RETENTION - Duration::from_secs(1));
    assert_eq!(semel.sweep(10).await.unwrap().removed, 0);
    assert!(semel.get(&key("1")).await.unwrap().is_some());
    clock.advance(Duration::from_secs(1));
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!(store.records(), 0);
}

#[tokio::test]
async fn a_record_that_a_sweep_found_beside_one_that_went_is_swept_in_its_time() {
    let (semel, store, clock) = bounded(|builder| builder);
    let [goes, stays] = neighbours(2).try_into().unwrap();
    drop(semel.record_once(Claim::new(&goes), outcome("paid")).await.unwrap());
    let permit = granted(semel.claim(Claim::new(&stays)).await.unwrap());
    clock.advance(LEASE / 2);
    permit.complete(outcome("paid")).await.unwrap();
    clock.advance(RETENTION - LEASE / 2);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    clock.advance(LEASE);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!(store.records(), 0);
}

/// A clock that goes on by a second whenever it is read.
#[derive(Default)]
struct EagerClock(std::sync::atomic::AtomicU64);

impl semel::clock::Clock for EagerClock {
    fn now(&self) -> semel::clock::Timestamp {
        let seconds = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        semel::clock::Timestamp::from_micros(1_000_000).plus(Duration::from_secs(seconds))
    }
}

#[tokio::test]
async fn the_moment_of_an_answer_is_not_before_any_record_in_it() {
    let store = MemoryStore::builder().clock(EagerClock::default()).build();
    let semel = Semel::builder(Answers(Arc::new(store))).no_sweep().build().unwrap();
    let claims = (0..20).map(|name| Claim::new(&key(&name.to_string()))).collect();
    let semel::ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
    semel.renew_all(&permits).await.unwrap();
    semel.complete_all(&permits, outcome("paid")).await.unwrap();
    for found in
        semel.get_all(&permits.iter().map(|permit| permit.key().clone()).collect::<Vec<_>>()).await.unwrap()
    {
        assert!(found.unwrap().is_some());
    }
}

/// A store that looks at the moment of each answer.
struct Answers(Arc<dyn Store>);

impl Store for Answers {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let reply = self.0.swap(batch);
        Reply::later(async move {
            let answer = reply.await?;
            for reply in &answer.value {
                let SwapReply::Swapped(record) = reply else { continue };
                assert!(record.changed_at <= answer.now, "{:?} after {:?}", record.changed_at, answer.now);
            }
            Ok(answer)
        })
    }

    fn load(&self, ids: Vec<semel::RecordId>) -> Reply<Vec<Loaded>> {
        let reply = self.0.load(ids);
        Reply::later(async move {
            let answer = reply.await?;
            for record in answer.value.iter().flatten().flatten() {
                assert!(record.changed_at <= answer.now, "{:?} after {:?}", record.changed_at, answer.now);
            }
            Ok(answer)
        })
    }

    semel_testkit::delegate!(0: sweep, scan);
}

#[tokio::test]
async fn a_held_record_that_is_resolved_is_swept_after_its_retention() {
    let (semel, store, clock) = bounded(|builder| builder);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    permit.hold("no answer").await.unwrap();
    clock.advance(RETENTION * 2);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 0, "kept until it is settled");
    let resolution = semel::Resolution::Done(outcome("looked"));
    assert_eq!(semel.resolve(&key("1"), resolution).await.unwrap(), semel::Resolved::Resolved);
    clock.advance(RETENTION);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!(store.records(), 0);
}

#[tokio::test]
async fn a_run_that_was_completed_is_forgotten_like_any_other_done_record() {
    let (semel, store, clock) =
        bounded(|builder| builder.records_max(2).forget_oldest(Duration::from_secs(1)));
    for name in 0..10 {
        let claim = Claim::new(&key(&name.to_string()));
        granted(semel.claim(claim).await.unwrap()).complete(outcome("paid")).await.unwrap();
        clock.advance(Duration::from_mins(1));
    }
    assert_eq!((store.records(), store.forgotten()), (2, 8));
}

#[tokio::test]
async fn forgetting_the_oldest_spares_the_next_life_of_a_key_that_was_done_long_ago() {
    let (semel, store, clock) =
        bounded(|builder| builder.records_max(2).forget_oldest(Duration::from_secs(1)));
    let [again, fresh, late] = neighbours(3).try_into().unwrap();
    drop(semel.record_once(Claim::new(&again), outcome("paid")).await.unwrap());
    clock.advance(RETENTION);
    let permit = granted(semel.claim(Claim::new(&again)).await.unwrap());
    drop(semel.record_once(Claim::new(&fresh), outcome("paid")).await.unwrap());
    assert_eq!(
        semel.claim(Claim::new(&late)).await.unwrap_err().kind(),
        ErrorKind::Full,
        "none is old enough"
    );
    assert_eq!((store.records(), store.forgotten()), (2, 0));
    permit.complete(outcome("paid")).await.unwrap();
}

#[tokio::test]
async fn forgetting_the_oldest_spares_what_is_kept_for_ever() {
    let (semel, store, clock) =
        bounded(|builder| builder.records_max(3).forget_oldest(Duration::from_secs(1)));
    let offset = key("offset");
    assert!(matches!(semel.move_offset(&offset, Move::Take).await.unwrap(), Moved::Moved(_)));
    for name in 0..10 {
        clock.advance(Duration::from_mins(1));
        drop(record(&semel, name).await.unwrap());
    }
    assert_eq!((store.records(), store.forgotten()), (3, 8));
    assert!(semel.get(&offset).await.unwrap().is_some(), "the offset is the oldest, and never expires");
}

#[tokio::test]
async fn a_sweep_with_a_small_limit_comes_to_every_record_though_others_keep_coming() {
    const LARGE: usize = 1 << 20;
    let (semel, store, clock) = bounded(|builder| builder);
    let names = (0..).map(|name: u32| key(&name.to_string()));
    let last = names.clone().find(|key| key.id().as_bytes()[0] >> 1 == 127).unwrap();
    drop(semel.record_once(Claim::new(&last), Outcome::success(vec![0; LARGE])).await.unwrap());
    for key in neighbours(130) {
        drop(semel.record_once(Claim::new(&key), outcome("paid")).await.unwrap());
    }
    clock.advance(RETENTION);
    for _ in 0..128 {
        assert_eq!(semel.sweep(1).await.unwrap().removed, 1);
    }
    assert!(store.bytes() < LARGE, "the records behind the first lock kept the last one from its turn");
}

#[tokio::test]
async fn a_store_that_has_run_for_years_still_sweeps() {
    let (semel, store, clock) = bounded(|builder| builder);
    clock.advance(Duration::from_hours(3 * 365 * 24));
    drop(record(&semel, 1).await.unwrap());
    clock.advance(RETENTION / 2);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 0);
    clock.advance(RETENTION / 2);
    assert_eq!(semel.sweep(10).await.unwrap().removed, 1);
    assert_eq!(store.records(), 0);
}
