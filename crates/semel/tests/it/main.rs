//! The core, tested from outside.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, or is told what no test foresees, fails a test, as it should; tests start tasks and wait"
)]

mod allocations;
mod bound;
mod codec;
mod engine;
mod machine;
mod model;
mod race;
mod systems;
mod tokio_clock;
mod world;
