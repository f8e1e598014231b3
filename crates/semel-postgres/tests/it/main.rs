//! The store on a real server.

#![cfg(test)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is told what no test foresees fails a test, as it should"
)]

mod conformance;
mod damage;
#[cfg(feature = "stream")]
mod in_transaction;
mod old_data;
mod proofs;
mod refusals;
mod rolling_upgrade;
mod rows;
mod server;
mod systems;
mod tls;
mod transactions;
mod waking;
