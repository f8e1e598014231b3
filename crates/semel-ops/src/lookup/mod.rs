//! Through a store page by page, by id prefix, and what such a walk counts.
//!
//! - [`walk`]: the pages. [`id_prefix`](IdPrefix): the beginning of an id, as logs show it.
//! - [`selection`](Selection): which records are meant. [`order`](Order): the first of them by age or by change.
//! - [`counted`](Counted): what a walk counts, of [streams](Pipelines), too.

mod counted;
mod id_prefix;
mod order;
mod selection;
pub mod walk;

pub use counted::{Counted, PipelineCounted, Pipelines, PutAside};
pub use id_prefix::IdPrefix;
pub use order::{Order, Sorted};
pub use selection::{SelectedState, Selection, SelectionWalk, Taken};
