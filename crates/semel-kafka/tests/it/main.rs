//! Kafka as a source, on the brokers that librdkafka itself imitates.
//!
//! - `source`: what the source keeps; `consumer`: one effect each through the loop.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod consumer;
mod source;
