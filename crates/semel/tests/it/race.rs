//! Real threads at a real barrier: never two winners, never none.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use semel::store::MemoryStore;
use semel::{Claim, Decision, Key, Semel};

use crate::world::outcome;

const THREADS: usize = 8;
const KEYS: usize = 20_000;

#[test]
fn eight_threads_at_a_barrier_over_twenty_thousand_keys_have_one_winner_each() {
    let semel = Semel::new(MemoryStore::new());
    let winners: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let barrier = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (semel, winners, barrier) = (semel.clone(), Arc::clone(&winners), Arc::clone(&barrier));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    for (number, won) in winners.iter().enumerate() {
                        let key = Key::new("race", &number.to_string()).unwrap();
                        barrier.wait();
                        match semel.claim(Claim::new(&key)).await.unwrap() {
                            Decision::Run(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                            Decision::Busy(_) => {}
                            other => panic!("{}", other.as_str()),
                        }
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    for (number, won) in winners.iter().enumerate() {
        assert_eq!(won.load(Ordering::SeqCst), 1, "key {number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_tasks_on_one_key_run_it_once_a_thousand_rounds_over() {
    let semel = Semel::new(MemoryStore::new());
    for round in 0..1_000 {
        let key = Key::new("race", &round.to_string()).unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let (semel, key, runs) = (semel.clone(), key.clone(), Arc::clone(&runs));
                tokio::spawn(async move {
                    match semel.claim(Claim::new(&key)).await.unwrap() {
                        Decision::Run(permit) => {
                            runs.fetch_add(1, Ordering::SeqCst);
                            permit.complete(outcome("paid")).await.unwrap();
                        }
                        Decision::Busy(_) | Decision::Replay(_) => {}
                        other => panic!("{}", other.as_str()),
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1, "round {round}");
    }
}
