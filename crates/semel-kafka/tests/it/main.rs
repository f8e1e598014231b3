//! Kafka as a source, on the brokers that librdkafka itself imitates.
//!
//! - `source`: what the source keeps; `consumer`: one effect each through the loop.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, or is told what no test foresees, fails a test, as it should"
)]

mod consumer;
mod source;
