//! Crashes of stores that live on a server: the callers go on, the server is hurt, and what was acknowledged is compared
//! with what is there afterwards.
//!
//! - [`stage`]: a load, its rounds, and what came of them.
//! - `postgres`, `failover`, `redis`, `cluster`: what is done to each, and the controls that must be found out.
//! - `transaction`: the process dies, and its server lives.

mod cluster;
mod failover;
mod postgres;
mod redis;
mod stage;
mod transaction;

pub(super) use cluster::run as cluster;
pub(super) use failover::run as failover;
pub(super) use postgres::run as postgres;
pub(super) use redis::run as redis;
pub(super) use transaction::run as transaction;
