//! The proxy and the claim server on real sockets: what passes, what is refused, what is bounded, and how it ends.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod admin;
mod api;
mod bounds;
mod config;
mod dashboard;
mod draining;
mod failing;
mod framing;
mod heads;
mod http2;
mod keys;
mod operate;
mod passing;
mod proxied;
mod secured;
mod server;
mod service;
mod streaming;
mod upgrading;

use test_http::client;
