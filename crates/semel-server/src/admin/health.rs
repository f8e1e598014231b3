//! What those who run a process may ask.

use std::time::Duration;

use semel::{Key, Semel};
use tokio::time::timeout;

/// How long the store may take to answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// A process that can be asked how it is.
pub trait Health: Send + Sync + 'static {
    /// Its engine.
    fn semel(&self) -> &Semel;

    /// Whether it is about to stop.
    fn is_draining(&self) -> bool;

    /// Sets the gauges that are only known when somebody looks.
    fn measure(&self);

    /// Waits until it has stopped.
    fn over(&self) -> impl Future<Output = ()> + Send;
}

/// Why a process cannot do its work now; `None` if it can.
pub(super) async fn not_ready(health: &impl Health) -> Option<String> {
    if health.is_draining() {
        return Some("draining: nothing new is taken".to_owned());
    }
    // Nobody claims this key; that it is not there is an answer, too.
    let key = match Key::new("semel.readyz", "probe") {
        Ok(key) => key,
        Err(error) => return Some(error.to_string()),
    };
    match timeout(STORE_TIMEOUT, health.semel().get(&key)).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("store: {error}")),
        Err(_) => Some(format!("store: no answer within {STORE_TIMEOUT:?}")),
    }
}
