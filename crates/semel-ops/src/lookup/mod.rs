//! Through a store page by page, by id prefix, and what such a walk counts.
//!
//! - [`walk`]: the pages. [`id_prefix`](IdPrefix): the beginning of an id, as logs show it.
//! - [`counted`](Counted): what a walk counts, of [streams](Pipelines), too.

mod counted;
mod id_prefix;
pub mod walk;

pub use counted::{Counted, PipelineCounted, Pipelines, PutAside};
pub use id_prefix::IdPrefix;
