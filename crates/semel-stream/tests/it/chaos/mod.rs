//! Troubles that a consumer must live through by itself: nothing lost, nothing doubled.
//!
//! - `relay`: a way to a server that can be cut off; `trial`: a consumer, its effects, and the trouble.
//! - `restarts`: brokers and stores that go away and come back; `network`: the network between them.
//! - `storm`: everything delivered a hundred times.

mod network;
mod relay;
mod restarts;
mod storm;
mod trial;
