//! What the binaries of semel are made of.
//!
//! # Layout
//!
//! - [`access`]: who asks, what they may, how often, and the note of what they did.
//! - [`admin`]: health and metrics of a running process, for those who run it.
//! - [`api`]: the claim API, for workers in every language.
//! - [`config`]: from a `semel.toml` and the command line to what a proxy is told.
//! - [`dashboard`]: pages for people on call.
//! - `listen`: connections of clients, for whatever answers them.
//! - [`moment`]: moments as text.
//! - [`operate`]: what operators do to somebody else's record.
//! - [`proxy`]: the reverse proxy, in front of any HTTP service.
//! - [`serve`]: the claim server: the API and the dashboard on one port.
//! - [`served`]: what the API and the dashboard work on. [`sight`]: what people look at while it runs.
//! - [`shown`]: records, spans, sizes and numbers as people read them.
//! - [`store`]: from a URL to a store, and what tools want to know of it beyond the four methods.
//! - [`view`]: records as JSON, the same from the API and from the command line.

pub mod access;
pub mod admin;
pub mod api;
pub mod config;
pub mod dashboard;
mod listen;
pub mod moment;
pub mod operate;
pub mod proxy;
pub mod serve;
pub mod served;
pub mod shown;
pub mod sight;
pub mod store;
pub mod view;
