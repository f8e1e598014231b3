//! Streams, on every store and every broker.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod brokers;
mod consumer;
mod feed;
#[cfg(feature = "postgres")]
mod in_transaction;
mod pipeline;
