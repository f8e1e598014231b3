//! How often a call allocates: counted, because every one of them is paid for on every call.

use allocation_counter::measure;
use semel::store::MemoryStore;
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Semel};

const CALLS: u64 = 1_000;

/// How many allocations one call makes, over many calls: the tables grow now and then, which is not the call's.
fn a_call(runtime: &tokio::runtime::Runtime, mut call: impl AsyncFnMut(u64)) -> u64 {
    let counted = measure(|| {
        runtime.block_on(async {
            for number in 0..CALLS {
                call(number).await;
            }
        });
    });
    counted.count_total / CALLS
}

#[test]
fn a_cycle_makes_at_most_five_allocations_and_a_replay_three() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let semel = Semel::new(MemoryStore::new());
    let claim = |number: u64| {
        let key = Key::scoped(["acme"], "charge", &format!("order-{number}")).unwrap();
        Claim::new(&key).fingerprint(Fingerprint::from_bytes([7; 32]))
    };
    let names = a_call(&runtime, async |number| drop(format!("order-{number}")));
    let cycle = a_call(&runtime, async |number| {
        let Decision::Run(permit) = semel.claim(claim(number)).await.unwrap() else { panic!("{number}") };
        permit.complete(Outcome::success(b"paid".as_slice())).await.unwrap();
    });
    let replay = a_call(&runtime, async |number| {
        assert!(matches!(semel.claim(claim(number)).await.unwrap(), Decision::Replay(_)));
    });
    println!("allocations: {} a cycle, {} a replay, key included", cycle - names, replay - names);
    assert!(cycle - names <= 5, "{cycle} a cycle");
    assert!(replay - names <= 3, "{replay} a replay");
}
