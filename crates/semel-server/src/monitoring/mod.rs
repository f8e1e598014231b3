//! What people look at while a server runs: counts of its store, rates of its decisions, and what happens now.
//!
//! - [`census`](Census): how many records are in which state, found out in the background, for each scope.
//! - [`decisions`](Live): as they are made; [`Rates`]: a second, over the last 15 minutes.
//! - [`store_health`](StoreHealth): whether the store takes claims, and whether its server's settings keep the promise.

mod census;
mod decisions;
pub(crate) mod gauges;
mod store_health;

pub use census::Census;
pub use decisions::{DecisionKind, Live, Rates, Sample, Seen};
pub use store_health::{StoreHealth, StoreStatus};
