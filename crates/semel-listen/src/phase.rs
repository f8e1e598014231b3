//! Whether a process serves, is about to stop, or has given up what still runs.

use tokio::sync::watch;

/// Whether a process serves, is about to stop, or has given up what still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Everything is served.
    #[default]
    Serving,
    /// What runs may finish; nothing new is taken.
    Draining,
    /// What still runs is cut off.
    Over,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Requests and runs that were in flight, and came to their end.
    pub finished: usize,
    /// Those that were still in flight when the time was up. Of what ran with a key, the lapse policy decides.
    pub cut_off: usize,
}

/// The next phase, once there is one. A process that is gone is over.
pub async fn next(phase: &mut watch::Receiver<Phase>) -> Phase {
    match phase.changed().await {
        Ok(()) => *phase.borrow_and_update(),
        Err(_) => Phase::Over,
    }
}

/// Waits until nothing new is served.
pub async fn no_longer_serving(phase: &mut watch::Receiver<Phase>) {
    // An error means that whoever serves is gone.
    let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
}

/// Waits until what still runs was given up.
pub async fn over(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Over).await;
}
