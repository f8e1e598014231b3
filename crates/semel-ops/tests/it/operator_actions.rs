//! What operators do on a store whose replies are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use semel::record::{Record, StateKind};
use semel::store::MemoryStore;
use semel::{Claim, Decision, ErrorKind, HoldAnswer, Key, Outcome, Permit, Resolution, Semel};
use semel_ops::operator_actions::{Settled, release_in, resolve_in};
use semel_testkit::{Call, Fault, FaultyStore};

const LOST_REPLY: Fault = Fault::LoseReply(Duration::ZERO);
const LOST_ASK: Fault = Fault::LoseAsk(Duration::ZERO);

/// A store in memory, and a way to it on which the first swaps go wrong.
fn lossy(store: &Arc<MemoryStore>, fault: Fault, swaps: usize) -> FaultyStore {
    let gone_wrong = AtomicUsize::new(0);
    FaultyStore::new(store.clone(), move |call| {
        let is_swap = call == Call::Swap;
        if is_swap && gone_wrong.fetch_add(1, Ordering::SeqCst) < swaps { fault } else { Fault::None }
    })
}

async fn running(semel: &Semel, name: &str) -> (Permit, Record) {
    let key = Key::new("charge", name).unwrap();
    let Decision::Run(permit) = semel.claim(Claim::new(&key)).await.unwrap() else {
        panic!("nobody else runs")
    };
    (permit, semel.get(&key).await.unwrap().unwrap())
}

async fn held(semel: &Semel, name: &str) -> Record {
    let (permit, record) = running(semel, name).await;
    assert_eq!(permit.hold("why").await.unwrap(), HoldAnswer::Held);
    semel.get(&record.key).await.unwrap().unwrap()
}

async fn state(semel: &Semel, record: &Record) -> StateKind {
    semel.get(&record.key).await.unwrap().unwrap().state.kind()
}

#[tokio::test]
async fn an_action_whose_reply_was_lost_is_found_to_have_been_done() {
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    let (_, record) = running(&semel, "a").await;
    let version = Some(record.version.get());
    let settled = release_in(&lossy(&store, LOST_REPLY, 1), &record, "why", version).await.unwrap();
    assert_eq!((settled, state(&semel, &record).await), (Settled::Released, StateKind::Released));
    for (name, resolution, word) in [
        ("b", Resolution::Release { reason: "it did not land".into() }, StateKind::Released),
        ("c", Resolution::Done(Outcome::success(*b"landed")), StateKind::Done),
    ] {
        let record = held(&semel, name).await;
        let version = Some(record.version.get());
        let settled = resolve_in(&lossy(&store, LOST_REPLY, 1), &record, &resolution, version).await.unwrap();
        assert_eq!((settled, state(&semel, &record).await), (Settled::Resolved, word), "{name}");
    }
}

#[tokio::test]
async fn an_action_that_never_reached_the_store_is_made_again() {
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    let (_, record) = running(&semel, "a").await;
    let settled = release_in(&lossy(&store, LOST_ASK, 2), &record, "why", None).await.unwrap();
    assert_eq!((settled, state(&semel, &record).await), (Settled::Released, StateKind::Released));
    let (_, record) = running(&semel, "b").await;
    let error = release_in(&lossy(&store, LOST_ASK, usize::MAX), &record, "why", None).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unknown, "nobody knows, and nobody says that it failed");
    assert_eq!(state(&semel, &record).await, StateKind::Running);
}

#[tokio::test]
async fn another_run_that_took_over_is_left_alone() {
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    let (permit, record) = running(&semel, "a").await;
    permit.release("by itself").await.unwrap();
    let (second, _) = running(&semel, "a").await;
    let settled = release_in(&*store, &record, "why", None).await.unwrap();
    assert_eq!(settled, Settled::Changed, "the run that was shown is over");
    second.renew().await.expect("the second run goes on");
}
