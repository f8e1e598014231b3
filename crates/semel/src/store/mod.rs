//! Where records live. A store swaps and decides nothing: that is the machine's work.
//!
//! A store has four methods and no defaults, because a default would give up what the method promises. Each
//! promise below is a named test in `semel-testkit`; a store that passes `conformance!` is a store.
//!
//! - [`contract`](Store): the trait, and what goes over it.
//! - [`scan`](Filter): which records a person or a tool wants to see.
//! - [`finding`](Finding): what a store's server is set to, against what its promise needs.
//! - [`settings_watch`](SettingsWatch): whether those settings still hold, checked while a store is used.
//! - [`memory`](MemoryStore): the store inside a process, bounded.

mod contract;
mod finding;
mod memory;
mod scan;
mod settings_watch;

pub use contract::{Answer, Caching, Loaded, Reply, Store, Swap, SwapReplies, SwapReply, Swaps, Swept};
pub use finding::{Finding, Verdict};
pub use memory::{MemoryStore, MemoryStoreBuilder};
pub use scan::{Filter, Page, Scan};
pub use settings_watch::{DurabilityDemand, SettingsWatch};
