//! The admin side of a proxy: injected, so that the proxy is built without the dashboard.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use semel::{Result, Semel};
use semel_listen::Phase;
use semel_ops::store_url::{Address, Opened};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Serves on the admin listener until the proxy has stopped, and returns its address: with health, metrics and the dashboard in
/// `semel_server::admin`.
pub type AdminSide = Box<dyn FnOnce(TcpListener, Running) -> Result<SocketAddr> + Send>;

/// What the admin side may look at.
pub struct Running {
    /// The engine.
    pub semel: Semel,
    /// Its store.
    pub store: Arc<Opened>,
    /// Where that is.
    pub store_address: Address,
    /// Sets the gauges that are only known when they are asked for.
    pub measure: Arc<dyn Fn() + Send + Sync>,
    /// How far the proxy is from its end.
    pub phase: watch::Receiver<Phase>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("store_address", &self.store_address).finish_non_exhaustive()
    }
}
