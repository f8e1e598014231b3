//! What the binaries of semel are made of.
//!
//! # Layout
//!
//! - [`proxy`]: the reverse proxy, in front of any HTTP service.
//! - [`store`]: from a URL to a store, and what tools want to know of it beyond the four methods.

pub mod proxy;
pub mod store;
