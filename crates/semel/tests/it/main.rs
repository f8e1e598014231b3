//! The core, tested from outside.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "arithmetic that overflows fails a test, as it should")]

mod bound;
mod codec;
mod engine;
mod machine;
mod model;
mod race;
mod systems;
mod tokio_clock;
mod world;
