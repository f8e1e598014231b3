//! The swaps, loads and waits that these tests share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use semel::machine::amend::count_duplicates;
use semel::record::{Duplicates, Keep, Record};
use semel::store::{Store, Swap, SwapReply};
use semel::{Key, Result};
use semel_redis::RedisStore;
use semel_testkit::sample;
use tokio::time::{Instant, sleep};

/// How long anything may take before it is taken for stuck.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub(crate) const LONG: Keep = Keep::For(sample::LONG);

/// The swap that makes the first record of a key.
pub(crate) fn first(key: &Key, keep: Keep) -> Swap {
    let write = sample::running(&sample::ask(key)).unwrap();
    Swap { expected: None, next: write.next, keep }
}

/// The swap that writes the same record again.
pub(crate) fn again(record: &Record, keep: Keep) -> Swap {
    let seen = Duplicates { count: 1, last_seen_at: Some(record.changed_at) };
    let write = sample::written(count_duplicates(Some(record), seen, record.changed_at).write).unwrap();
    Swap { expected: Some(record.version), next: write.next, keep }
}

/// One swap, and its answer.
pub(crate) async fn swap(store: &RedisStore, swap: Swap) -> Result<SwapReply> {
    Ok(store.swap([swap].into()).await?.value.remove(0))
}

/// One swap that must win.
pub(crate) async fn write(store: &RedisStore, one: Swap) -> Arc<Record> {
    match swap(store, one).await.unwrap() {
        SwapReply::Swapped(record) => record,
        reply => panic!("a swap at the expected version wins, but: {reply:?}"),
    }
}

/// A new record of a key like no other.
pub(crate) async fn put(store: &RedisStore, keep: Keep) -> Arc<Record> {
    write(store, first(&sample::key("redis").unwrap(), keep)).await
}

pub(crate) async fn load(store: &RedisStore, key: &Key) -> Result<Option<Arc<Record>>> {
    store.load(vec![key.id()]).await?.value.remove(0)
}

/// Tries until it is done, or the time is over.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut attempt: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        if let Some(done) = attempt().await {
            return done;
        }
        assert!(Instant::now() < deadline, "waited too long: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the store's own clock is past all moments up to now and `span` more.
pub(crate) async fn pass(store: &RedisStore, span: Duration) {
    let start = store.load(Vec::new()).await.unwrap().now;
    until("the store's clock moves", || async {
        (store.load(Vec::new()).await.unwrap().now > start.plus(span)).then_some(())
    })
    .await;
}
