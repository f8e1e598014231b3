//! `memory:`, a store inside this process.

use std::sync::Arc;

use semel::store::MemoryStore;
use semel::{Error, ErrorKind};

use super::opened::{Opened, OperatedStore};

/// Bytes that a small record takes at most, its outcome included.
const RECORD_BYTES_MAX: usize = 1_024;

struct InMemory;

impl OperatedStore for InMemory {
    fn survives(&self) -> String {
        "nothing: it ends with its process".to_owned()
    }
}

pub(super) fn open() -> Opened {
    Opened::new(Arc::new(MemoryStore::new()), InMemory)
}

pub(super) fn open_with_room(records: usize) -> Opened {
    let bytes = records.saturating_mul(RECORD_BYTES_MAX);
    let store = MemoryStore::builder().records_max(records).bytes_max(bytes).build();
    Opened::new(Arc::new(store), InMemory)
}

/// Nobody can look into another process.
pub(super) fn elsewhere() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "a `memory:` store lives and dies inside one process, and cannot be looked at from another; ask that process, \
         or name a store that lasts: `--store file:FOLDER`, say",
    )
}
