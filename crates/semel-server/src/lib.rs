//! The claim server: JSON over HTTP for workers in every language, and a dashboard for people on call.
//!
//! # Layout
//!
//! - [`serve`]: the server: the API and the dashboard on one port. [`admin`]: the same, read-only, beside another process.
//! - [`api`]: the claim API. [`dashboard`]: pages for people on call.
//! - [`access`]: who asks, what they may, how often, and the audit log of what they did.
//! - [`config`]: from a `semel.toml` and the command line to the settings of a server.
//! - [`monitoring`]: what people look at while it runs. [`operator_actions`]: what operators do to a record that is not theirs.
//! - [`state`]: what the API and the dashboard work on.

pub mod access;
pub mod admin;
pub mod api;
pub mod config;
pub mod dashboard;
pub mod monitoring;
pub mod operator_actions;
pub mod serve;
pub mod state;
