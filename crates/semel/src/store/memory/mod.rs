//! The store inside a process: sharded, bounded by records and bytes, gone when the process is.
//!
//! - [`store`]: the four methods, and the bound that they keep.
//! - [`shard`]: one lock's worth of records, and what finds the ones past their keep without a scan.
//! - [`packed`]: one record in one allocation.
//! - [`room`]: how many records and bytes there are, and what happens at the bound.

mod packed;
mod room;
mod shard;
mod store;

pub use store::{MemoryStore, MemoryStoreBuilder};
