//! The core, tested from outside.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "arithmetic that overflows fails a test, as it should")]

mod codec;
mod machine;
mod model;
