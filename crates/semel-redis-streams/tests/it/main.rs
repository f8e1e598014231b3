//! Redis Streams as a source, on a real server.
//!
//! - `source`: what the source keeps; `consumer`: one effect each through the loop.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod consumer;
mod source;
