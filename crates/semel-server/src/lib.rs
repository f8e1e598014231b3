//! What the binaries of semel are made of.
//!
//! # Layout
//!
//! - [`admin`]: health and metrics of a running process, for those who run it.
//! - [`config`]: from a `semel.toml` and the command line to what a proxy is told.
//! - [`moment`]: moments as text.
//! - [`proxy`]: the reverse proxy, in front of any HTTP service.
//! - [`span`]: spans of time as text.
//! - [`store`]: from a URL to a store, and what tools want to know of it beyond the four methods.

pub mod admin;
pub mod config;
pub mod moment;
pub mod proxy;
pub mod span;
pub mod store;
