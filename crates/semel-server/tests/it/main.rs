//! The proxy on real sockets: what passes, what is refused, what is bounded, and how it ends.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, or is told what no test foresees, fails a test, as it should"
)]

mod client;
mod config;
mod passing;
mod proxied;
mod service;
