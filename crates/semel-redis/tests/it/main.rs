//! The store on real servers: one, a cluster, one behind a sentinel; encrypted, with few rights, and dying.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "an overflow or an unforeseen answer fails a test, as it should"
)]

mod access;
mod cluster;
mod conformance;
mod damaged;
mod fake_sentinel;
mod format_1;
mod full_memory;
mod half_done;
mod lapsed_hold;
mod now;
mod proofs;
mod refusal;
mod restart;
mod sentinel;
mod server_errors;
mod settings;
mod sweep;
mod tls;
mod tries;
mod versions;
