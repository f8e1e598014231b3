//! The memory store keeps every promise.

use semel::store::MemoryStore;

async fn open() -> MemoryStore {
    MemoryStore::new()
}

semel_testkit::conformance!(open);
