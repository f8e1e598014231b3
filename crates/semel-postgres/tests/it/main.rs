//! The store on a real server.

#![cfg(test)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an answer that no test foresees fails a test, as it should"
)]

mod conformance;
mod damage;
#[cfg(feature = "stream")]
mod in_transaction;
mod interleavings;
mod old_data;
mod pooler;
mod proofs;
mod refusals;
mod rights;
mod rolling_upgrade;
mod rows;
mod server;
mod settings;
mod standby;
mod systems;
mod time_limits;
mod tls;
mod transactions;
mod waking;
mod write_cost;
