//! Safe retries for HTTP: an `Idempotency-Key` layer for tower, hyper and axum.
#![cfg_attr(feature = "axum", doc = "", doc = include_str!("../README.md"))]
//!
//! # Layout
//!
//! - [`layer`](IdempotencyLayer), [`service`](Idempotency): what is put around a service.
//! - `routes`: from a request to its rules. `identity`: its key and caller. [`hosts`](Hosts): which hosts have keys of
//!   their own. `decide`: its body,
//!   fingerprint and claim.
//!   `run`: the call, and how its response is settled. `future`: why a client that hangs up cancels nothing.
//! - [`reply`](Reply): a response as an outcome. `replay`: the way back. `header_filter`: which headers are.
//! - `key`, [`structured`]: the key. [`json`], `fingerprint`: what makes two requests the same.
//! - [`caller`](Principal): who a caller is. `quota`: how much one may use. `budget`: how much memory all may.
//! - [`profile`](Profile), [`settings`](Settings): what clients see, as data. [`problem`](Problem): refusals.
//! - [`settle`](Settle), [`extract`](Granted): what handlers say and get. [`decided`](Decided): for logs.
//! - [`openapi`](openapi_fragment): all this for the readers of an API's description.

mod body;
mod budget;
mod caller;
mod decide;
mod decided;
#[cfg(feature = "axum")]
mod extract;
mod fingerprint;
mod future;
mod header_filter;
mod hosts;
mod identity;
pub mod json;
mod key;
mod layer;
mod openapi;
mod problem;
mod profile;
mod quota;
mod refusal;
mod replay;
mod reply;
mod routes;
mod run;
mod service;
mod settings;
mod settle;
pub mod structured;

pub use body::{RequestBody, ResponseBody};
#[cfg(feature = "jwt")]
pub use caller::Jwt;
pub use caller::{Caller, PeerAddress, Principal};
pub use decided::Decided;
#[cfg(feature = "axum")]
pub use extract::Granted;
pub use future::ResponseFuture;
pub use hosts::Hosts;
pub use identity::{KeyIdentity, OriginalTarget};
pub use layer::IdempotencyLayer;
pub use openapi::openapi_fragment;
pub use problem::{Code, Problem};
pub use profile::{
    BODY_BYTES_MAX_DEFAULT, KEY_CHARS_MAX_DEFAULT, KeyForm, KeyPresence, KeyScope, Names, OnServerError,
    Profile, Rules, Statuses, UnquotedKeys, WhileRunning,
};
pub use reply::Reply;
pub use service::Idempotency;
pub use settings::{Quotas, Route, Settings};
pub use settle::Settle;
