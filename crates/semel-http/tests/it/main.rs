//! The layer around services, without sockets.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod allocations;
mod bodies;
#[cfg(feature = "axum")]
mod extractor;
mod hang_ups;
mod leaving;
mod meaning;
mod outages;
mod sameness;
mod settling;
mod vectors;
mod world;
