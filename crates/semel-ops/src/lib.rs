//! What the command line and the servers of semel share.
//!
//! # Layout
//!
//! - [`store_url`]: from a URL to a store, and what tools want to know of it beyond the four methods;
//!   [`store_setting`]: the same as a setting in a configuration file.
//! - [`record_json`]: records as JSON. [`format`](mod@format): records, moments, spans, sizes and numbers as people read them.
//! - [`lookup`]: through a store page by page, by id prefix, and what such a walk counts.
//! - [`operator`]: what operators do to records that are not theirs, one or many, and the audit log of it.
//! - [`access_log`]: lines about requests, of the proxy and of the claim server.
//! - [`served_store`]: what a running server says of its store, exactly, to tools elsewhere.
//! - [`missing_feature()`]: what a build says that was made without a feature.

pub mod access_log;
pub mod format;
pub mod lookup;
mod missing_feature;
pub mod operator;
pub mod record_json;
pub mod served_store;
pub mod store_setting;
pub mod store_url;

pub use missing_feature::{missing_feature, missing_feature_message};
