//! An engine over the memory store on a clock that the test moves, and short ways to say what tests say often.

use std::sync::Arc;
use std::time::Duration;

use semel::store::{Caching, Loaded, MemoryStore, Reply, Store, SwapReplies, Swaps};
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Permit, RecordId, Semel, SemelBuilder};
use semel_testkit::ManualClock;

pub(crate) const LEASE: Duration = Duration::from_mins(1);
pub(crate) const RETENTION: Duration = Duration::from_hours(24);

pub(crate) struct World {
    pub(crate) semel: Semel,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(choose: impl FnOnce(SemelBuilder) -> SemelBuilder) -> Self {
        let clock = ManualClock::at(1_000_000_000);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
        let semel = choose(Semel::builder_shared(Arc::clone(&store))).build().unwrap();
        Self { semel, store, clock }
    }

    /// Another process on the same store.
    pub(crate) fn another(&self) -> Semel {
        Semel::builder_shared(Arc::clone(&self.store)).owner("another").build().unwrap()
    }

    pub(crate) async fn run(&self, key: &Key) -> Permit {
        granted(self.semel.claim(Claim::new(key)).await.unwrap())
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::scoped(["acme"], "charge", name).unwrap()
}

pub(crate) fn request(text: &str) -> Fingerprint {
    Fingerprint::of_parts([text])
}

pub(crate) fn outcome(text: &str) -> Outcome {
    Outcome::success(text.to_owned())
}

#[track_caller]
pub(crate) fn granted(decision: Decision) -> Permit {
    match decision {
        Decision::Run(permit) => permit,
        other => panic!("expected to run, was told {}", other.as_str()),
    }
}

/// Whether the first run of a new store's only key was granted and given back before this one: a run that never started
/// is no attempt, but the store has written it twice.
pub(crate) fn follows_a_run_that_was_given_back(permit: &Permit) -> bool {
    permit.attempt() == 1 && permit.fence() > 2
}

#[track_caller]
pub(crate) fn replayed(decision: Decision) -> String {
    match decision {
        Decision::Replay(replay) => String::from_utf8(replay.outcome().bytes().to_vec()).unwrap(),
        other => panic!("expected a replay, was told {}", other.as_str()),
    }
}

/// A store whose answers engines may keep in memory, as those of a store on another machine.
pub(crate) struct Remote(Arc<dyn Store>);

impl Remote {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

fn cacheable<T: Send + Unpin + 'static>(reply: Reply<T>) -> Reply<T> {
    Reply::later(async move { Ok(reply.await?.caching(Caching::Allowed)) })
}

impl Store for Remote {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        cacheable(self.0.swap(batch))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        cacheable(self.0.load(ids))
    }

    semel_testkit::delegate!(0: sweep, scan);
}
