//! NATS JetStream as a source, on a real server.
//!
//! - `broker`: a stream of a test's own; `source`: what the source keeps.
//! - `chaos`: troubles that consumers must live through.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod broker;
mod chaos;
mod source;
