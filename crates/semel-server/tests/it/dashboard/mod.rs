//! The dashboard over HTTP, as a browser without JavaScript sees it.
//!
//! - `visit`: a server with tokens and records, and a browser that keeps its cookie. `markup`: whether a page is clean.

mod acting;
mod bulk;
mod census;
mod escaping;
mod forms;
mod login;
mod many;
mod markup;
mod pipelines;
mod requeue;
mod rights;
mod scopes;
mod searching;
mod visit;
