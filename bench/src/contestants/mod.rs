//! Who is measured. Each does, for every call, what its users would do: from texts to an answer.
//!
//! - [`contestant`](Contestant): what all of them can do.
//! - [`engine`](Engine): `Semel` over a store, through its public API.
//! - [`store`](StoreAlone): a store, driven by the machine directly: one swap to claim, one to complete.
//! - [`file`]: the store in a folder, for the same two.
//! - `trial`: what every one of them must do.
//! - [`map`](PlainMap): `DashMap<String, …>` with check-then-insert, as web projects write it themselves.
//! - [`lean_map`](LeanMap): the same with less in it than they usually have.

mod contestant;
mod engine;
pub(crate) mod file;
mod lean_map;
mod map;
mod store;
#[cfg(test)]
pub(crate) mod trial;

pub(crate) use contestant::{Claimed, Contestant, roomy};
pub(crate) use engine::Engine;
pub(crate) use lean_map::LeanMap;
pub(crate) use map::PlainMap;
pub(crate) use store::StoreAlone;
