//! Troubles that a consumer must live through by itself: nothing lost, nothing doubled.
//!
//! - `restarts`: brokers and stores that go away and come back; `network`: the network between them.
//! - `storm`: everything delivered a hundred times.

mod network;
mod restarts;
mod storm;
