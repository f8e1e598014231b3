//! Where every record is, in memory: about forty bytes a key.
//!
//! - [`entry`]: what is known of one record without reading it. [`entries`]: many of them, one behind the other.
//! - [`shard`]: one lock's worth of entries. [`table`]: all of them, by id and in their order.
//! - [`due`]: what is past its keep, found without a scan. [`unsettled`]: what runs or is held, found without a scan.

pub(crate) mod due;
mod entries;
pub(crate) mod entry;
pub(crate) mod shard;
mod table;
pub(crate) mod unsettled;

pub(crate) use entry::Entry;
pub(crate) use table::{Index, prefix_of};
