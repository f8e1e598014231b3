//! Safe retries for HTTP: an `Idempotency-Key` layer for tower, hyper and axum.
//!
//! A client sends a key of its own with a request, and the same key again when it does not know what became of it. The
//! request runs once; retries get the first response, byte for byte.
//!
//! # Layout
//!
//! - [`layer`](IdempotencyLayer), [`service`](Idempotency): what is put around a service.
//! - `route`: from a request to its rules. `decide`: its key, caller, body and fingerprint, and the claim.
//!   `run`: the call, and how its response is settled. `future`: why a client that hangs up cancels nothing.
//! - [`reply`](Reply): a response as an outcome. `replay`: the way back. `kept`: which headers are.
//! - [`header`](structured): the key. [`json`], `fingerprint`: what makes two requests the same.
//! - [`principal`](Principal): who a caller is. `quota`: how much one may use. `held`: how much memory all may.
//! - [`profile`](Profile), [`settings`](Settings): what clients see, as data. [`problem`](Problem): refusals.
//! - [`settle`](Settle), [`granted`](Granted): what handlers say and get. [`decided`](Decided): for logs.
//! - [`openapi`](openapi_fragment): all this for the readers of an API's description.

mod body;
mod decide;
mod decided;
mod fingerprint;
mod future;
#[cfg(feature = "axum")]
mod granted;
mod header;
mod held;
pub mod json;
mod kept;
mod layer;
mod openapi;
mod principal;
mod problem;
mod profile;
mod quota;
mod refusal;
mod replay;
mod reply;
mod route;
mod run;
mod service;
mod settings;
mod settle;
pub mod structured;

pub use body::{RequestBody, ResponseBody};
pub use decided::Decided;
pub use future::ResponseFuture;
#[cfg(feature = "axum")]
pub use granted::Granted;
pub use layer::IdempotencyLayer;
pub use openapi::openapi_fragment;
#[cfg(feature = "jwt")]
pub use principal::Jwt;
pub use principal::{Caller, PeerAddress, Principal};
pub use problem::{Code, Problem};
pub use profile::{
    BODY_BYTES_MAX_DEFAULT, Bare, KEY_CHARS_MAX_DEFAULT, KeyForm, Names, OnServerError, Presence, Profile,
    Reach, Rules, Statuses, WhileRunning,
};
pub use reply::Reply;
pub use service::Idempotency;
pub use settings::{Quotas, Route, Settings};
pub use settle::Settle;
