//! What people look at while a server runs: counts of its store, rates of its decisions, and what happens now.
//!
//! - [`walk`]: through a store page by page. [`counted`](Counted): what such a walk counts; [`pipelines`](Pipelines): of streams.
//! - [`census`](Census): how many records are in which state, found out in the background; `by_scope`: for each scope.
//! - [`rates`](Rates): decisions a second, over the last 15 minutes.
//! - [`id_prefix`](IdPrefix): the beginning of an id, as logs show it.
//! - [`live`](Live): decisions as they are made.

mod by_scope;
mod census;
mod counted;
mod id_prefix;
mod live;
mod pipelines;
mod rates;
pub mod walk;

pub use census::Census;
pub use counted::Counted;
pub use id_prefix::IdPrefix;
pub use live::{Live, Seen};
pub use pipelines::{PipelineCounted, Pipelines, PutAside};
pub use rates::{Rates, Sample};
