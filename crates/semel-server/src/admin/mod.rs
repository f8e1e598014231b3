//! Health and metrics of a running process, for those who run it. On a listener of its own, on loopback by default.
//!
//! - `/healthz`: the process is alive. `/readyz`: it can do its work, or why not. `/metrics`: for Prometheus.
//! - [`health`](Health): what is asked. [`serve`]: the listener. [`recorder`]: where metrics go.

mod health;
mod recorder;
mod serve;

pub use health::Health;
pub use recorder::{Scraped, recorder};
pub use serve::serve;
