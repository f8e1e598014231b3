//! How a consumer is told to stop, and how far it has come.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::report::{Report, Tally};

/// What the outside wants of a consumer.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) stop: bool,
    /// Grows with every checkpoint that is asked for.
    pub(super) checkpoints: u64,
}

/// The consumer's end of what the outside wants of it.
pub(super) struct Control {
    wanted: watch::Sender<Wanted>,
    tally: Arc<Tally>,
}

/// Stops a consumer, from anywhere. Clones stop the same one.
#[derive(Clone)]
pub struct Stopper {
    control: Arc<Control>,
}

impl Control {
    pub(super) fn new(tally: &Arc<Tally>) -> Arc<Self> {
        Arc::new(Self { wanted: watch::Sender::new(Wanted::default()), tally: Arc::clone(tally) })
    }

    pub(super) fn stopper(self: &Arc<Self>) -> Stopper {
        Stopper { control: Arc::clone(self) }
    }

    pub(super) fn hear(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.wanted.borrow().stop
    }

    pub(super) fn stop(&self) {
        self.wanted.send_modify(|wanted| wanted.stop = true);
    }

    /// Waits for so long, or until there is a stop: nobody sleeps through one.
    pub(super) async fn pause(&self, long: Duration) {
        let mut wanted = self.hear();
        if wanted.borrow().stop {
            return sleep(long.min(PAUSE_AT_STOP_MAX)).await;
        }
        tokio::select! {
            () = sleep(long) => {}
            _ = wanted.wait_for(|wanted| wanted.stop) => {}
        }
    }
}

/// How long is waited at most between two tries while the consumer is stopping.
const PAUSE_AT_STOP_MAX: Duration = Duration::from_millis(200);

impl Stopper {
    /// Nothing more is begun; what runs ends, and its receipts, offsets and acknowledgements are written. Then the consumer
    /// returns. Harmless to repeat.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Commits now, up to where everything is done, whatever the [`Checkpoint`](super::Checkpoint) is.
    pub fn checkpoint(&self) {
        self.control.wanted.send_modify(|wanted| wanted.checkpoints = wanted.checkpoints.wrapping_add(1));
    }

    /// What was done so far.
    pub fn report(&self) -> Report {
        self.control.tally.report()
    }
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper").field("stopping", &self.control.is_stopping()).finish()
    }
}
