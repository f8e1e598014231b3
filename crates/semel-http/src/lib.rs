//! Safe retries for HTTP: an `Idempotency-Key` layer for tower, hyper and axum.
//!
//! # Layout
//!
//! - [`profile`](Profile): what clients see, as data. [`problem`](Code): refusals.
//! - [`json`]: canonical JSON, and what of it does not count. [`structured`]: structured field values.
//! - `header`: the key of a request. `fingerprint`: what two requests under one key must agree on.

#[allow(dead_code, reason = "the service that calls it is being written")]
mod fingerprint;
#[allow(dead_code, reason = "the service that calls it is being written")]
mod header;
pub mod json;
mod principal;
mod problem;
mod profile;
mod settings;
mod settle;
pub mod structured;

#[cfg(feature = "jwt")]
pub use principal::Jwt;
pub use principal::{Caller, PeerAddress, Principal};
pub use problem::Code;
pub use profile::{
    BODY_BYTES_MAX_DEFAULT, Bare, KEY_CHARS_MAX_DEFAULT, KeyForm, Names, OnServerError, Presence, Profile,
    Reach, Rules, Statuses, WhileRunning,
};
pub use settings::{Quotas, Route, Settings};
pub use settle::Settle;
