//! Stores that break a promise each, to prove that the suite would notice.
//!
//! A check that no store can fail proves nothing. So every promise has at least one saboteur: a memory store with
//! one fault, which that promise must find.
//!
//! - [`list`](saboteurs): all of them, by name and by the promise that they break.
//! - `fault`: what can be wrong with a store.
//! - `fields`: the saboteurs that lose a part of a record.
//! - `store`: the memory store with a fault in it.
//! - `swap`: the faults of a swap, which need more than a changed argument or answer.

mod fault;
mod fields;
mod list;
mod store;
mod swap;

pub use list::{Saboteur, saboteurs};
pub use store::Sabotaged;
