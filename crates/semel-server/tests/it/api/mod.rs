//! The claim API on a real server: every decision, lost replies, permits that travel, batches, records and operators.

mod decisions;
mod server;
