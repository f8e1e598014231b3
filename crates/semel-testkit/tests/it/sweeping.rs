//! Sweepers and claimers at the same time: a store that does both passes, and what it gets wrong is seen.

use std::sync::Arc;
use std::time::Duration;

use semel::RecordId;
use semel::store::{Answer, Loaded, MemoryStore, Reply, Store, SwapReplies, Swaps, Swept};
use semel_testkit::sweeping::{Report, sweep_while_claiming};
use tokio::sync::RwLock;

const EXPIRED: usize = 10_000;
const QUIET: Duration = Duration::from_millis(100);
/// How long a sweep takes that everybody waits for.
const SWEEP: Duration = Duration::from_millis(20);

async fn report(store: Arc<dyn Store>) -> Report {
    let handles = |count| (0..count).map(|_| Arc::clone(&store)).collect::<Vec<_>>();
    let report = sweep_while_claiming(&handles(2), &handles(8), EXPIRED, QUIET).await.unwrap();
    println!("{report}");
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sweepers_and_eight_claimers_get_along_on_the_memory_store() {
    let report = report(Arc::new(MemoryStore::new())).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.removed, EXPIRED);
    assert!(report.quiet.claims > 100 && report.sweeping.claims > 0, "{report}");
}

/// What is wrong with a store's sweep.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    /// Everybody waits for it.
    Exclusive,
    /// It says that it is done before it is.
    GivesUp,
    /// It takes records along that are not past their keep.
    Greedy,
    /// It meets an error.
    Refused,
}

struct Sweeps {
    store: Arc<MemoryStore>,
    flaw: Flaw,
    turn: Arc<RwLock<u64>>,
}

impl Sweeps {
    fn with(flaw: Flaw) -> Arc<dyn Store> {
        Arc::new(Self { store: Arc::default(), flaw, turn: Arc::default() })
    }
}

impl Store for Sweeps {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let (reply, turn) = (Arc::clone(&self.store), Arc::clone(&self.turn));
        Reply::later(async move {
            let _turn = turn.read().await;
            reply.swap(batch).await
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let (store, flaw, turn) = (Arc::clone(&self.store), self.flaw, Arc::clone(&self.turn));
        Reply::later(async move {
            let hidden = flaw == Flaw::Greedy && *turn.read().await > 0;
            let Answer { now, mut value, .. } = store.load(ids).await?;
            value.iter_mut().step_by(100).filter(|_| hidden).for_each(|found| *found = Ok(None));
            Ok(Answer::new(now, value))
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let (store, flaw, turn) = (Arc::clone(&self.store), self.flaw, Arc::clone(&self.turn));
        Reply::later(async move {
            let mut turn = turn.write().await;
            *turn += 1;
            if flaw == Flaw::Exclusive {
                tokio::time::sleep(SWEEP).await;
            }
            if flaw == Flaw::Refused && *turn == 3 {
                return Err(semel::Error::new(semel::ErrorKind::Unavailable, "deadlock detected"));
            }
            let Answer { now, mut value, .. } = store.sweep(limit).await?;
            value.more_left &= flaw != Flaw::GivesUp || *turn < 3;
            Ok(Answer::new(now, value))
        })
    }

    semel_testkit::delegate!(store: scan);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_everybody_waits_for_shows_in_the_claims() {
    let report = report(Sweeps::with(Flaw::Exclusive)).await;
    // Not by the ratio: on a busy machine some claims are slow for reasons of their own, also while nobody sweeps.
    assert!(report.is_clean() && report.sweeping.p99 > SWEEP / 2, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_gives_up_too_soon_leaves_something() {
    assert!(report(Sweeps::with(Flaw::GivesUp)).await.left > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_takes_too_much_is_missed() {
    assert!(report(Sweeps::with(Flaw::Greedy)).await.missing > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweeper_that_meets_an_error_says_so() {
    let report = report(Sweeps::with(Flaw::Refused)).await;
    assert!(report.errors.iter().any(|error| error.contains("deadlock")), "{report}");
}
