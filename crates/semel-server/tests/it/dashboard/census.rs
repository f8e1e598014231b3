//! Counts are exact, and a store that does not answer leaves the last.

use std::sync::Arc;
use std::time::Duration;

use semel::store::{MemoryStore, Page, Reply, Scan, Store};
use semel::{Claim, Error, ErrorKind, Key, Lapse, Outcome, Semel};
use semel_server::access::Tokens;
use semel_server::monitoring::Census;
use tokio::time::timeout;

use super::visit::{done, held, running};

const PATIENCE: Duration = Duration::from_secs(20);

/// A store that can be told not to answer walks.
struct Silent {
    inner: MemoryStore,
    is_silent: std::sync::atomic::AtomicBool,
}

impl Store for Silent {
    semel_testkit::delegate!(inner: swap, load, sweep);

    fn scan(&self, scan: Scan) -> Reply<Page> {
        if self.is_silent.load(std::sync::atomic::Ordering::SeqCst) {
            return Reply::ready(Err(Error::new(ErrorKind::Unavailable, "nobody is there")));
        }
        self.inner.scan(scan)
    }
}

/// Waits for a walk that began after this call.
async fn a_walk(census: &Census) {
    let mut walks = census.walks();
    // The one that is under way may have passed what was just written.
    for _ in 0..2 {
        census.look_soon();
        timeout(PATIENCE, walks.changed()).await.expect("walks").expect("goes on");
    }
}

#[tokio::test]
async fn counts_are_exact_for_everything_and_for_each_scope() {
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(Arc::<MemoryStore>::clone(&store)).build().expect("is built");
    let census = Census::start(store, &Tokens::none());
    let acme: Vec<Box<str>> = vec!["acme".into()];
    assert_eq!(census.latest(&acme).records(), 0);
    let mut permits = Vec::new();
    for number in 0..200 {
        let scope = if number % 4 == 0 { vec!["acme", "eu"] } else { vec!["globex"] };
        let key = |operation: &str| Key::scoped(&scope, operation, &number.to_string()).expect("is one");
        done(&semel, &key("done"), Outcome::success("12345")).await;
        held(&semel, &key("held"), "lapsed").await;
        permits.push(running(&semel, Claim::new(&key("running")).lease(Duration::from_hours(1))).await);
        for (operation, lapse) in [("lapsed", Lapse::Rerun), ("lapsed under hold", Lapse::Hold)] {
            let claim = Claim::new(&key(operation)).lease(Duration::from_millis(1)).lapse(lapse);
            permits.push(running(&semel, claim).await);
        }
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    a_walk(&census).await;
    let (all, own) = (census.latest(&[]), census.latest(&acme));
    assert_eq!([all.done, all.held, all.running, all.lapsed, all.released], [200, 400, 400, 200, 0]);
    assert_eq!([own.done, own.held, own.running, own.lapsed, own.outcome_bytes], [50, 100, 100, 50, 250]);
    assert_eq!((all.oldest_running.len(), own.oldest_held.len()), (50, 50));
    let since: Vec<_> = all.oldest_held.iter().map(semel_ops::format::record::since).collect();
    assert!(since.is_sorted() && all.oldest_held[0].key.name() == "0", "the oldest first");
    assert!(own.oldest_running.iter().all(|record| record.key.scope().next() == Some("acme")));
}

#[tokio::test]
async fn a_store_that_does_not_answer_leaves_the_last_count() {
    let store = Arc::new(Silent { inner: MemoryStore::new(), is_silent: false.into() });
    let semel = Semel::builder_shared(Arc::<Silent>::clone(&store)).build().expect("is built");
    done(&semel, &Key::new("charge", "1").expect("is one"), Outcome::success("1")).await;
    let census = Census::start(Arc::<Silent>::clone(&store), &Tokens::none());
    a_walk(&census).await;
    let before = census.latest(&[]);
    assert_eq!((before.done, census.trouble()), (1, None));
    store.is_silent.store(true, std::sync::atomic::Ordering::SeqCst);
    done(&semel, &Key::new("charge", "2").expect("is one"), Outcome::success("1")).await;
    a_walk(&census).await;
    let after = census.latest(&[]);
    assert_eq!((after.done, after.as_of), (1, before.as_of), "as it was, and as old as it is");
    assert!(census.trouble().is_some_and(|why| why.contains("nobody is there")));
    store.is_silent.store(false, std::sync::atomic::Ordering::SeqCst);
    a_walk(&census).await;
    assert_eq!((census.latest(&[]).done, census.trouble()), (2, None));
}
