//! The claim server on real sockets: its API, its dashboard, who may do what, and how it ends.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod api;
#[path = "../../../semel-proxy/tests/it/certificate.rs"]
mod certificate;
mod dashboard;
mod server;

use test_http::client;
