//! The layer around services, without sockets.

#![cfg(test)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is told what no test foresees fails a test, as it should"
)]

mod bodies;
mod extractor;
mod leaving;
mod meaning;
mod outages;
mod sameness;
mod settling;
mod vectors;
mod world;
