//! The admin side of a process that is something else than a claim server: health, metrics and the dashboard, on a listener of
//! its own, on loopback by default.
//!
//! - `/healthz`: the process is alive. `/readyz`: it can do its work, or why not. `/metrics`: for Prometheus.
//! - [`side`]: the listener. [`recorder`]: where metrics go.

mod recorder;
mod side;

pub use recorder::{Scraped, recorder};
pub use side::Side;
