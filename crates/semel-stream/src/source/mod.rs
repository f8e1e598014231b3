//! Where events come from.
//!
//! [`contract`](Source) is what every source keeps; beside it, one file a broker.

mod contract;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
