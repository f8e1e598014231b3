//! The proxy on real sockets: what passes, what is refused, what is bounded, and how it ends.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod admin;
mod bounds;
mod certificate;
mod config;
mod counted;
mod draining;
mod failing;
mod framing;
mod hard_clients;
mod heads;
mod hostile_upstream;
mod http2;
mod keys;
mod memory;
mod passing;
mod probing;
mod proxied;
mod reloading;
mod response_framing;
mod secured;
mod service;
mod streaming;
mod timeouts;
mod upgrading;

use test_http::client;
