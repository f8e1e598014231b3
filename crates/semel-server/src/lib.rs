//! What the binaries of semel are made of.
//!
//! # Layout
//!
//! - [`config`]: from a `semel.toml` and the command line to what a proxy is told.
//! - [`proxy`]: the reverse proxy, in front of any HTTP service.
//! - [`store`]: from a URL to a store, and what tools want to know of it beyond the four methods.

pub mod config;
pub mod proxy;
pub mod store;
