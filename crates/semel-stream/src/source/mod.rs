//! Where events come from.
//!
//! [`contract`](Source) is what every source keeps; beside it, one file a broker. `outstanding`: what was handed out, for
//! sources whose broker takes nothing back.

mod contract;
mod file;
mod outstanding;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
pub use file::{LINE_BYTES_MAX_DEFAULT, LinesSource};
