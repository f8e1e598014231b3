//! Where every record is, in memory: 38 bytes a key, and five to seven more to find it by.
//!
//! - [`entry`]: what is known of one record without reading it. [`packed`]: the same in 38 bytes.
//! - [`memory`]: memory that goes back to the system when it is dropped. [`entries`]: packed entries in pieces of it.
//!   [`places`]: which of them belongs to an id.
//! - [`shard`]: one lock's worth of entries. [`table`]: all of them, by id and in the order of ids.

mod entries;
pub(crate) mod entry;
mod memory;
mod packed;
mod places;
mod shard;
mod table;

pub(crate) use entry::Entry;
pub(crate) use memory::Memory;
pub(crate) use packed::{HintLine, shard_of};
pub(crate) use shard::{GROUP, Shard};
pub(crate) use table::{Index, SHARDS};
