//! What is broken on purpose: each flaw must be found, or the simulator proves nothing.

use std::sync::Arc;
use std::time::Duration;

use semel::record::Record;
use semel::store::{Answer, Reply, Store, Swap, SwapReplies, SwapReply, Swaps};
use semel::{RecordId, Result};

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// The resource takes every write, whatever its fence.
    NoFencing,
    /// The store looks, waits a moment, and writes whatever is there by then.
    CheckThenSet,
    /// The store says that a stale swap took.
    StaleIgnored,
}

/// A store with the flaw in it.
pub(super) fn flawed(store: Arc<dyn Store>, flaw: Flaw) -> Arc<dyn Store> {
    match flaw {
        Flaw::None | Flaw::NoFencing => store,
        Flaw::CheckThenSet => Arc::new(Flawed { store, swap_one: check_then_set }),
        Flaw::StaleIgnored => Arc::new(Flawed { store, swap_one: stale_ignored }),
    }
}

type SwapOne = fn(Arc<dyn Store>, Swap) -> Reply<SwapReplies>;

struct Flawed {
    store: Arc<dyn Store>,
    swap_one: SwapOne,
}

impl Store for Flawed {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let (store, swap_one) = (Arc::clone(&self.store), self.swap_one);
        Reply::later(async move {
            let mut now = store.load(Vec::new()).await?.now;
            let mut replies = Vec::new();
            for swap in batch {
                let answer = swap_one(Arc::clone(&store), swap).await?;
                now = now.max(answer.now);
                replies.extend(answer.value);
            }
            Ok(Answer::new(now, replies.into()))
        })
    }

    crate::delegate!(store: load, sweep, scan);
}

async fn present(store: &Arc<dyn Store>, id: RecordId) -> Result<Option<Record>> {
    store.load(vec![id]).await?.record()
}

fn check_then_set(store: Arc<dyn Store>, swap: Swap) -> Reply<SwapReplies> {
    Reply::later(async move {
        let found = present(&store, swap.id()).await?;
        if found.as_ref().map(|record| record.version) != swap.expected {
            return store.swap([swap].into()).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let expected = present(&store, swap.id()).await?.map(|record| record.version);
        store.swap([Swap { expected, ..swap }].into()).await
    })
}

fn stale_ignored(store: Arc<dyn Store>, swap: Swap) -> Reply<SwapReplies> {
    Reply::later(async move {
        let wanted = swap.next.clone();
        let mut answer = store.swap([swap].into()).await?;
        for reply in &mut answer.value {
            if let SwapReply::Stale(Some(current)) = reply {
                *reply = SwapReply::Swapped(wanted.clone().stamp(current.version, answer.now));
            }
        }
        Ok(answer)
    })
}
