//! The layer around services, without sockets.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod allocations;
mod bodies;
#[cfg(feature = "axum")]
mod extractor;
mod hang_ups;
mod identity;
mod kept_facts;
mod leaving;
mod meaning;
#[cfg(feature = "axum")]
mod nested;
mod outages;
mod outcome_table;
mod patience;
mod probing;
mod quotas;
mod refused_requests;
mod sameness;
mod settling;
mod vectors;
#[cfg(feature = "axum")]
mod with;
mod world;
