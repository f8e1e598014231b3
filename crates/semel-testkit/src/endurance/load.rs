//! The callers, from start to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use semel::store::Store;
use semel::{Result, Semel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::caller::{Caller, Recent};
use super::ledger::{Book, Ledger};

/// A lease that no load outlives: whoever takes over a run that was not released took it from somebody.
const LEASE: Duration = Duration::from_hours(12);
const RETENTION: Duration = Duration::from_hours(24);
/// How many callers share an engine, and with it their round trips.
const CALLERS_AN_ENGINE: usize = 4;

/// Callers at work. Dropped without [`stop`](Self::stop), they are gone, and so is what they know.
pub struct Endurance {
    callers: JoinSet<()>,
    book: Book,
    acknowledged: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
}

impl Endurance {
    /// Sets so many callers to work. What they ask comes from the seed; their keys are like no others.
    pub fn start(store: &Arc<dyn Store>, seed: u64, callers: usize) -> Result<Self> {
        Self::go_on(Ledger::default(), store, seed, callers)
    }

    /// The same, with a ledger that is already begun.
    pub fn go_on(ledger: Ledger, store: &Arc<dyn Store>, seed: u64, callers: usize) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (book, recent) = (Book::new(ledger), Recent::default());
        let mut at_work = JoinSet::new();
        let mut semel = engine(store)?;
        for number in 0..callers {
            if number.is_multiple_of(CALLERS_AN_ENGINE) {
                semel = engine(store)?;
            }
            let caller = Caller::new(semel.clone(), book.clone(), recent.clone(), seed, number)
                .heeding(stopped.clone())
                .counting(Arc::clone(&acknowledged));
            at_work.spawn(caller.live());
        }
        Ok(Self { callers: at_work, book, acknowledged, stop })
    }

    /// How many answers were acknowledged since the start.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until so many answers were acknowledged, or for as long as it has patience. Says whether they were.
    pub async fn until_acknowledged(&self, answers: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.acknowledged() < answers {
            if Instant::now() > until {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        true
    }

    /// Has every caller end what it is at, and hands over what they were told. A caller whose store does not answer gives
    /// up after its present try; what it asked for is in the ledger as something that may have happened.
    pub async fn stop(mut self) -> Ledger {
        self.stop.send_replace(true);
        while let Some(ended) = self.callers.join_next().await {
            // A caller that panicked knows things that nobody else does: without them the ledger means nothing.
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        self.book.close()
    }
}

/// An engine of the load, which remembers nothing by itself: every replay asks the store.
pub(super) fn engine(store: &Arc<dyn Store>) -> Result<Semel> {
    Semel::builder_shared(Arc::clone(store)).lease(LEASE).retention(RETENTION).replays_kept(0, 0).build()
}
