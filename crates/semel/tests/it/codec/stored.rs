//! What the memory store keeps.

use std::time::Duration;

use semel::machine::claim::{Ask, Probe, Reentry, claim, record_once};
use semel::record::{PermitId, Record};
use semel::store::{MemoryStore, Store, Swap, SwapReply};
use semel::{Fingerprint, Key, Lapse, Outcome};

fn ask(name: &str) -> Ask {
    Ask {
        key: Key::scoped(["acme"], "charge", name).unwrap(),
        fingerprint: Some(Fingerprint::from_bytes([5; 32])),
        label: None,
        permit_id: PermitId::new(77),
        owner: "worker-1".into(),
        reentry: Reentry::Refused,
        lease: Duration::from_mins(1),
        retention: Duration::from_hours(1),
        lapse: Lapse::Rerun,
        attempts_max: None,
        first_event: Some("event-1".into()),
        probe: Probe::None,
    }
}

#[tokio::test]
async fn what_the_memory_store_hands_back_is_what_it_was_given() {
    let store = MemoryStore::new();
    let now = store.load(Vec::new()).await.unwrap().now;
    let (run, done) = (ask("run"), ask("done"));
    let outcome = Outcome::success("paid").reference("primary", "pay-1");
    let writes = [claim(None, &run, now).write, record_once(None, &done, &outcome, now).write];
    let batch: Vec<_> = writes
        .into_iter()
        .flatten()
        .map(|write| Swap { expected: None, next: write.next, keep: write.keep })
        .collect();
    let drafts: Vec<_> = batch.iter().map(|swap| swap.next.clone()).collect();
    let loaded = |reply: &SwapReply| match reply {
        SwapReply::Swapped(record) => Record::clone(record),
        SwapReply::Stale(_) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => {
            panic!("{reply:?}")
        }
    };
    let answer = store.swap(batch.into()).await.unwrap();
    let swapped: Vec<Record> = answer.value.iter().map(loaded).collect();
    let expected: Vec<Record> = drafts
        .into_iter()
        .zip(&swapped)
        .map(|(draft, stored)| Record::clone(&draft.stamp(stored.version, stored.changed_at)))
        .collect();
    assert_eq!(swapped, expected);
    let kept = store.load(vec![run.key.id(), done.key.id()]).await.unwrap().records().unwrap();
    assert_eq!(kept.into_iter().flatten().collect::<Vec<_>>(), expected);
}
