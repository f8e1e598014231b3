//! What operators do: on a store whose replies are lost, and to a record that is no longer what they were shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use semel::record::{Record, StateKind};
use semel::store::MemoryStore;
use semel::{
    Claim, Decision, ErrorKind, HoldAnswer, Key, OperatorAnswer, Outcome, Permit, Resolution, Semel,
};
use semel_ops::record_json::OperatorAnswerView;
use semel_testkit::{Call, Fault, FaultyStore};

const LOST_REPLY: Fault = Fault::LoseReply(Duration::ZERO);
const LOST_ASK: Fault = Fault::LoseAsk(Duration::ZERO);

/// An operator's engine on a way to the store on which the first swaps go wrong.
fn lossy(store: &Arc<MemoryStore>, fault: Fault, swaps: usize) -> Semel {
    let gone_wrong = AtomicUsize::new(0);
    let store = FaultyStore::new(store.clone(), move |call| {
        let is_swap = call == Call::Swap;
        if is_swap && gone_wrong.fetch_add(1, Ordering::SeqCst) < swaps { fault } else { Fault::None }
    });
    Semel::builder(store).no_sweep().build().unwrap()
}

fn workers(store: &Arc<MemoryStore>) -> Semel {
    Semel::builder_shared(store.clone()).no_sweep().build().unwrap()
}

async fn running(semel: &Semel, name: &str) -> (Permit, Record) {
    let key = Key::new("charge", name).unwrap();
    let Decision::Run(permit) = semel.claim(Claim::new(&key)).await.unwrap() else {
        panic!("the key is free")
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
    let semel = workers(&store);
    let (_, record) = running(&semel, "a").await;
    let version = Some(record.version.get());
    let answer = lossy(&store, LOST_REPLY, 1).release_shown(&record, "why", version).await.unwrap();
    assert_eq!((answer, state(&semel, &record).await), (OperatorAnswer::Released, StateKind::Released));
    for (name, resolution, word) in [
        ("b", Resolution::Release { reason: "it did not land".into() }, StateKind::Released),
        ("c", Resolution::Done(Outcome::success("landed")), StateKind::Done),
    ] {
        let record = held(&semel, name).await;
        let version = Some(record.version.get());
        let operator = lossy(&store, LOST_REPLY, 1);
        let answer = operator.resolve_shown(&record, resolution, version).await.unwrap();
        assert_eq!((answer, state(&semel, &record).await), (OperatorAnswer::Resolved, word), "{name}");
    }
}

#[tokio::test]
async fn an_action_that_never_reached_the_store_is_made_again() {
    let store = Arc::new(MemoryStore::new());
    let semel = workers(&store);
    let (_, record) = running(&semel, "a").await;
    let answer = lossy(&store, LOST_ASK, 2).release_shown(&record, "why", None).await.unwrap();
    assert_eq!((answer, state(&semel, &record).await), (OperatorAnswer::Released, StateKind::Released));
    let (_, record) = running(&semel, "b").await;
    let error = lossy(&store, LOST_ASK, usize::MAX).release_shown(&record, "why", None).await;
    assert_eq!(
        error.unwrap_err().kind(),
        ErrorKind::Unknown,
        "it is unknown, and is not said to have failed"
    );
    assert_eq!(state(&semel, &record).await, StateKind::Running);
}

#[tokio::test]
async fn another_run_that_took_over_is_left_alone() {
    let store = Arc::new(MemoryStore::new());
    let semel = workers(&store);
    let (permit, record) = running(&semel, "a").await;
    permit.release("by itself").await.unwrap();
    let (second, _) = running(&semel, "a").await;
    let answer = semel.release_shown(&record, "why", None).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Changed, "the run that was shown is over");
    second.renew().await.expect("the second run goes on");
}

#[tokio::test]
async fn a_version_that_is_no_longer_current_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let semel = workers(&store);
    let first = held(&semel, "a").await;
    let resolution = Resolution::Release { reason: "it did not land".into() };
    semel.resolve_shown(&first, resolution.clone(), None).await.unwrap();
    let second = held(&semel, "a").await;
    let seen = Some(first.version.get());
    let done = Resolution::Done(Outcome::success("landed"));
    for resolution in [resolution, done] {
        let answer = semel.resolve_shown(&second, resolution, seen).await.unwrap();
        assert_eq!(answer, OperatorAnswer::Changed);
    }
    assert_eq!(semel.release_shown(&second, "why", seen).await.unwrap(), OperatorAnswer::Changed);
    assert_eq!(semel.get(&second.key).await.unwrap(), Some(second), "nothing was written");
}

#[test]
fn an_answer_is_one_word_in_json() {
    for (answer, word) in [
        (OperatorAnswer::Released, "released"),
        (OperatorAnswer::Resolved, "resolved"),
        (OperatorAnswer::NotHeld, "not_held"),
        (OperatorAnswer::Changed, "changed"),
    ] {
        let view = OperatorAnswerView::from(answer);
        assert_eq!(serde_json::to_value(view).unwrap(), serde_json::json!({ "decision": word }));
        assert_eq!(view.as_str(), word);
    }
}
