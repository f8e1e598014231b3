//! Crashes of stores that live on a server: the callers go on, the server or the way to it is hurt, and what was acknowledged
//! is compared with what is there afterwards.
//!
//! - [`stage`]: a load by a process of its own, its rounds, and the result. `postgres`, `failover`, `redis`, `cluster`: what is
//!   done to each server, and the controls that must be found out.
//! - [`campaign`]: clients in this process ([`client`]), and everything that they were shown ([`shown`]). `standby_cut`,
//!   `partition`, `old_primary`, `sentinel`: the network fails in one place. `pooler`: sessions are shared with others.
//! - `transaction`: the process dies, and its server lives.

mod campaign;
mod client;
mod cluster;
mod failover;
mod old_primary;
mod partition;
mod pooler;
mod postgres;
mod redis;
mod sentinel;
mod shown;
mod stage;
mod standby_cut;
mod transaction;

pub(super) use cluster::run as cluster;
pub(super) use failover::run as failover;
pub(super) use old_primary::run as old_primary;
pub(super) use partition::run as partition;
pub(super) use pooler::run as pooler;
pub(super) use postgres::run as postgres;
pub(super) use redis::run as redis;
pub(super) use sentinel::run as sentinel;
pub(super) use standby_cut::run as standby_cut;
pub(super) use transaction::run as transaction;
