//! The store inside a process: sharded, bounded by records and bytes, gone when the process is.
//!
//! - [`store`]: the four methods, and the bound that they keep.
//! - [`shard`]: one lock's worth of records, and what finds the ones past their keep without a scan.
//! - [`slot`]: one record, with what is read without looking into it.
//! - [`room`]: how many records and bytes there are, and what happens at the bound.

mod room;
mod shard;
mod slot;
mod store;

pub use store::{MemoryStore, MemoryStoreBuilder};
