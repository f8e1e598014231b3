//! Through a store page by page, by id prefix, and what such a walk counts.
//!
//! - [`walk`]: the pages. [`id_prefix`](IdPrefix): the beginning of an id, as logs show it.
//! - [`counted`](Counted): what a walk counts; [`pipelines`](Pipelines): of streams.

mod counted;
mod id_prefix;
mod pipelines;
pub mod walk;

pub use counted::Counted;
pub use id_prefix::IdPrefix;
pub use pipelines::{PipelineCounted, Pipelines, PutAside};
