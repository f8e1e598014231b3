//! What the binaries of semel are made of.
//!
//! # Layout
//!
//! - [`store`]: from a URL to a store, and what tools want to know of it beyond the four methods.

pub mod store;
