//! Safe retries for HTTP: an `Idempotency-Key` layer for tower, hyper and axum.
#![cfg_attr(feature = "axum", doc = "", doc = include_str!("../README.md"))]
//!
//! # Layout
//!
//! - [`layer`](IdempotencyLayer), [`service`](Idempotency): what is put around a service.
//! - `routes`: from a request to its rules. `identity`: its key and caller. [`hosts`](Hosts): which hosts
//!   have keys of their own.
//! - `exchange`: decision and run as one future. [`body`](RequestBody): what both sides read.
//! - [`stored_response`](Reply): a response as an outcome, and its replay. `header_filter`: which headers are kept.
//! - [`probe`](Probe): what became of a run whose end is not known.
//! - [`http_record`](HttpRecord): a record of the layer as people read it.
//! - `key`, [`structured`]: the key. [`json`], `fingerprint`: what makes two requests the same.
//! - [`caller`](Principal): who a caller is. `quota`: how much one may use. `budget`: how much memory all may.
//! - [`profile`](Profile), [`settings`](Settings): what clients see, as data. [`problem`](Problem): refusals.
//! - [`settle`](Settle), [`extract`](Granted): what handlers say and get.
//! - [`decided`](Decided), [`observer`](RequestObserver), [`request_id()`]: for logs.
//! - [`openapi`](openapi_fragment): all this for the readers of an API's description.

mod body;
mod body_buffer;
mod budget;
mod caller;
mod decided;
mod exchange;
#[cfg(feature = "axum")]
mod extract;
mod fingerprint;
mod header_filter;
mod hosts;
mod http_record;
mod identity;
pub mod json;
mod key;
mod layer;
mod observer;
mod openapi;
mod probe;
mod problem;
mod profile;
mod quota;
mod refusal;
mod request_id;
mod routes;
mod scratch;
mod service;
mod settings;
mod settle;
mod stored_response;
pub mod structured;

pub use body::{RequestBody, ResponseBody};
#[cfg(feature = "jwt")]
pub use caller::Jwt;
pub use caller::{Caller, PeerAddress, Principal, client_address};
pub use decided::{Decided, DecisionKind};
pub use exchange::ResponseFuture;
#[cfg(feature = "axum")]
pub use extract::Granted;
pub use hosts::Hosts;
pub use http_record::HttpRecord;
pub use identity::{KeyIdentity, OriginalTarget};
pub use layer::IdempotencyLayer;
pub use observer::{Observe, RequestObserver};
pub use openapi::openapi_fragment;
pub use probe::{Probe, ProbeAnswer, ProbeRequest};
pub use problem::{Code, Problem};
pub use profile::{
    BODY_BYTES_MAX_DEFAULT, KEY_CHARS_MAX_DEFAULT, KeyForm, KeyPresence, KeyScope, Names, OnServerError,
    Profile, Rules, Statuses, UnquotedKeys, WhileRunning,
};
pub use request_id::{REQUEST_ID_BYTES_MAX, request_id, request_id_beside_key};
pub use service::Idempotency;
pub use settings::{Quotas, Route, Settings};
pub use settle::Settle;
pub use stored_response::{Reply, StoredResponse};
