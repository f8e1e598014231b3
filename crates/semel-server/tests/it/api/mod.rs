//! The claim API on a real server: every decision, lost replies, permits that travel, batches, records and operators.

mod batches;
mod decisions;
mod document;
mod events;
mod operators;
mod outcomes;
mod permits;
mod records;
mod scopes;
mod server;
mod store;
mod strict;
