//! Troubles that a consumer must live through by itself: nothing lost, nothing doubled.
//!
//! - [`relay`]: a way to a server that can be cut off; [`trial`]: a consumer, its effects, and the trouble.
//! - [`network`]: the network between a consumer and its broker; [`storm`]: everything delivered a hundred times.

pub mod network;
pub mod relay;
pub mod storm;
pub mod trial;
