//! The phases of a process, from its start to its end, always in this order.

use tokio::sync::watch;

/// The phases of a process, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Everything is served.
    #[default]
    Serving,
    /// Everything is served, new connections too, but the process says that it is not ready: load balancers go elsewhere before
    /// anything is refused.
    Leaving,
    /// Requests in flight may finish; nothing new is taken.
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

/// Waits for this phase, or a later one.
pub async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // An error means that the process which serves is gone.
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}

#[cfg(test)]
mod tests;
