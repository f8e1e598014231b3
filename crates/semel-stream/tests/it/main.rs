//! Streams, on every store and every broker.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod brokers;
#[cfg(all(feature = "nats", feature = "rabbitmq", feature = "postgres"))]
mod chaos;
mod consumer;
mod feed;
#[cfg(feature = "postgres")]
mod in_transaction;
mod pipeline;
