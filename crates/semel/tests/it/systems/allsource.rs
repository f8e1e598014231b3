//! allsource: event ingestion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, ErrorKind, Key, RETENTION_DEFAULT, RecordedOnce, Semel};

use crate::world::{World, key, outcome};

#[tokio::test]
async fn allsource_check_and_register_in_one_call_gives_a_duplicate_the_original_event_id() {
    let world = World::new();
    let first = world.semel.record_once(Claim::new(&key("1")), outcome("evt-1")).await.unwrap();
    assert!(matches!(first, RecordedOnce::Recorded(_)));
    let RecordedOnce::Replay(replay) =
        world.semel.record_once(Claim::new(&key("1")), outcome("evt-2")).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(&**replay.outcome().bytes(), b"evt-1");
}

#[test]
fn allsource_two_callers_never_both_register() {
    let semel = Semel::new(MemoryStore::new());
    let registered = Arc::new((0..20_000).map(|_| AtomicU32::new(0)).collect::<Vec<_>>());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (semel, registered) = (semel.clone(), Arc::clone(&registered));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    for (number, count) in registered.iter().enumerate() {
                        let key = Key::new("ingest", &number.to_string()).unwrap();
                        let told = semel.record_once(Claim::new(&key), outcome("evt")).await.unwrap();
                        count.fetch_add(
                            u32::from(matches!(told, RecordedOnce::Recorded(_))),
                            Ordering::SeqCst,
                        );
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(registered.iter().all(|count| count.load(Ordering::SeqCst) == 1));
}

#[tokio::test]
async fn allsource_twenty_four_hours_and_a_bound_that_holds() {
    assert_eq!(RETENTION_DEFAULT, Duration::from_hours(24));
    let store = Arc::new(MemoryStore::builder().records_max(1_000).build());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    for number in 0..2_000 {
        let told = semel.record_once(Claim::new(&key(&number.to_string())), outcome("evt")).await;
        if number < 1_000 {
            assert!(matches!(told.unwrap(), RecordedOnce::Recorded(_)));
        } else {
            assert_eq!(told.unwrap_err().kind(), ErrorKind::Full);
        }
    }
    assert_eq!(store.records(), 1_000);
}

#[tokio::test]
async fn allsource_statistics_say_what_was_registered_and_what_was_a_duplicate() {
    let world = World::new();
    for name in ["1", "2", "1", "1"] {
        drop(world.semel.record_once(Claim::new(&key(name)), outcome("evt")).await.unwrap());
    }
    let stats = world.semel.stats();
    assert_eq!((stats.run, stats.replay), (2, 2));
}
