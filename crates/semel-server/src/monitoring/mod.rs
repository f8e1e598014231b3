//! What people look at while a server runs: counts of its store, rates of its decisions, and what happens now.
//!
//! - [`census`](Census): how many records are in which state, found out in the background; `by_scope`: for each scope.
//! - [`rates`](Rates): decisions a second, over the last 15 minutes.
//! - [`live`](Live): decisions as they are made.

mod by_scope;
mod census;
mod live;
mod rates;

pub use census::Census;
pub use live::{Live, Seen};
pub use rates::{Rates, Sample};
