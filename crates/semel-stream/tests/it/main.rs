//! Streams, on every store and every broker.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, or is told what no test foresees, fails a test, as it should"
)]

mod consumer;
mod file;
mod file_once;
mod pipeline;
mod statistics;
