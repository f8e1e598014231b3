//! A store that answers fewer or more than it was asked: its answers cannot be told apart, so none of them is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::store::{Loaded, MemoryStore, Reply, Store, SwapReplies, SwapReply, Swaps};
use semel::{Claim, ClaimedAll, ErrorKind, RecordId, Result, Semel};

use crate::world::{granted, key, outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    TooFew,
    TooMany,
}

/// Answers as many as it was asked until it miscounts. Clones share everything.
#[derive(Clone)]
struct Miscounting {
    store: Arc<MemoryStore>,
    answers: Answers,
    swaps: Arc<AtomicBool>,
    loads: Arc<AtomicBool>,
}

impl Miscounting {
    fn new(answers: Answers) -> Self {
        Self { store: Arc::new(MemoryStore::new()), answers, swaps: Arc::default(), loads: Arc::default() }
    }
}

impl Store for Miscounting {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let (reply, answers) = (self.store.swap(batch), self.answers);
        if !self.swaps.load(Ordering::SeqCst) {
            return reply;
        }
        Reply::later(async move {
            Ok(reply.await?.map(|mut replies| {
                match answers {
                    Answers::TooFew => drop(replies.remove(0)),
                    Answers::TooMany => replies.push(SwapReply::Stale(None)),
                }
                replies
            }))
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let (reply, answers) = (self.store.load(ids), self.answers);
        if !self.loads.load(Ordering::SeqCst) {
            return reply;
        }
        Reply::later(async move {
            Ok(reply.await?.map(|mut found| {
                match answers {
                    Answers::TooFew => drop(found.remove(0)),
                    Answers::TooMany => found.push(Ok(None)),
                }
                found
            }))
        })
    }

    semel_testkit::delegate!(store: sweep, scan);
}

fn miscounting(answers: Answers) -> (Semel, Miscounting) {
    let store = Miscounting::new(answers);
    (Semel::builder(store.clone()).no_sweep().build().unwrap(), store)
}

#[track_caller]
fn assert_unknown<T>(answer: Result<T>, what: &str, answers: Answers) {
    let kind = answer.map_err(|error| error.kind()).err();
    assert_eq!(kind, Some(ErrorKind::Unknown), "{what}, {answers:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_to_have_taken_if_the_store_miscounts_its_swaps() {
    for answers in [Answers::TooFew, Answers::TooMany] {
        let (semel, store) = miscounting(answers);
        let claims = ["1", "2"].map(|name| Claim::new(&key(name))).into_iter().collect();
        let ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
        let alone = granted(semel.claim(Claim::new(&key("3"))).await.unwrap());
        store.swaps.store(true, Ordering::SeqCst);
        assert_unknown(semel.complete_all(&permits, outcome("paid")).await, "complete_all", answers);
        assert_unknown(semel.renew_all(&permits).await, "renew_all", answers);
        assert_unknown(alone.complete(outcome("paid")).await, "complete", answers);
        assert_unknown(semel.claim(Claim::new(&key("4"))).await, "claim", answers);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_to_be_there_or_gone_if_the_store_miscounts_its_loads() {
    for answers in [Answers::TooFew, Answers::TooMany] {
        let (semel, store) = miscounting(answers);
        let keys = ["1", "2"].map(key);
        for key in &keys {
            granted(semel.claim(Claim::new(key)).await.unwrap()).complete(outcome("paid")).await.unwrap();
            assert_eq!(semel.claim(Claim::new(key)).await.unwrap().as_str(), "replay");
        }
        let parts = granted(semel.claim(Claim::new(&key("3"))).await.unwrap()).parts().unwrap();
        store.loads.store(true, Ordering::SeqCst);
        assert_unknown(semel.get(&keys[0]).await, "get", answers);
        assert_unknown(semel.get_all(&keys).await, "get_all", answers);
        assert_unknown(semel.get_settled(keys[0].id(), Duration::ZERO).await, "get_settled", answers);
        let claims = keys.iter().map(Claim::new).collect();
        assert_unknown(semel.claim_all(claims).await, "claim_all", answers);
        assert_unknown(semel.permit(parts).complete(outcome("paid")).await, "complete", answers);
        assert_unknown(semel.flush().await, "flush", answers);
        store.loads.store(false, Ordering::SeqCst);
        semel.flush().await.unwrap();
        for found in semel.get_all(&keys).await.unwrap() {
            assert_eq!(found.unwrap().unwrap().duplicates.count, 1, "counts wait for a store that answers");
        }
    }
}
