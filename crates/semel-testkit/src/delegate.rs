//! For stores that wrap another: the methods that they pass on unchanged.

/// Passes methods of a [`Store`](semel::store::Store) on to a field, inside its `impl`.
///
/// ```
/// use semel::store::{Loaded, MemoryStore, Reply, Store, SwapReplies, Swaps};
///
/// struct Counting {
///     store: MemoryStore,
///     swaps: std::sync::atomic::AtomicUsize,
/// }
///
/// impl Store for Counting {
///     fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
///         self.swaps.fetch_add(batch.len(), std::sync::atomic::Ordering::Relaxed);
///         self.store.swap(batch)
///     }
///
///     semel_testkit::delegate!(store: load, sweep, scan);
/// }
/// ```
#[macro_export]
macro_rules! delegate {
    ($field:tt: $($method:ident),+) => { $($crate::delegate!(@ $method $field);)+ };
    (@ swap $field:tt) => {
        fn swap(&self, batch: semel::store::Swaps) -> semel::store::Reply<semel::store::SwapReplies> {
            self.$field.swap(batch)
        }
    };
    (@ load $field:tt) => {
        fn load(&self, ids: Vec<semel::RecordId>) -> semel::store::Reply<Vec<semel::store::Loaded>> {
            self.$field.load(ids)
        }
    };
    (@ sweep $field:tt) => {
        fn sweep(&self, limit: usize) -> semel::store::Reply<semel::store::Swept> {
            self.$field.sweep(limit)
        }
    };
    (@ scan $field:tt) => {
        fn scan(&self, scan: semel::store::Scan) -> semel::store::Reply<semel::store::Page> {
            self.$field.scan(scan)
        }
    };
}
