//! Whether the proxy serves, is about to stop, or has given up what still runs.

use tokio::sync::watch;

/// Whether the proxy serves, is about to stop, or has given up what still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everything is served.
    #[default]
    Serving,
    /// What runs may finish; nothing new is taken.
    Draining,
    /// What still runs is cut off.
    Over,
}

/// The next phase, once there is one. A proxy that is gone is over.
pub(super) async fn next(phase: &mut watch::Receiver<Phase>) -> Phase {
    match phase.changed().await {
        Ok(()) => *phase.borrow_and_update(),
        Err(_) => Phase::Over,
    }
}

/// Waits until the proxy serves no more.
pub(super) async fn no_longer_serving(phase: &mut watch::Receiver<Phase>) {
    // An error means that the proxy is gone.
    let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
}

/// Waits until the proxy has given up what still runs.
pub(super) async fn over(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Over).await;
}
