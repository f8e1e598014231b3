//! Throwaway servers for tests and measurements: PostgreSQL, `PgBouncer`, Redis, NATS and RabbitMQ as they are installed here,
//! each with a folder and a port of its own on 127.0.0.1, durable by default, and gone afterwards.
//!
//! A server is stopped and its folder removed when its value is dropped, and also when the process that started it is
//! killed: a watchdog of a few lines of shell holds the other end of a pipe. Where we are root, the
//! servers run as an unprivileged user.
//!
//! ```no_run
//! let server = test_services::Postgres::start()?;
//! println!("{}", server.url());
//! # anyhow::Ok(())
//! ```
//!
//! # Layout
//! - [`Link`]: a TCP link to a server that can be cut, frozen, or made to swallow replies.
//! - [`Postgres`]: one server, and standbys of it; [`PgBouncer`]: a pooler before it; [`Redis`], [`RedisCluster`], [`Sentinel`], [`RedisWithSentinel`]; [`Nats`]; [`RabbitMq`].
//! - [`postgres_url`], [`redis_url`], [`redis_cluster_url`], [`nats_url`], [`rabbitmq_url`]: the server that all tests of a run share.
//! - `place`: folder and port; `process`: the process in it; `watchdog`: clears up; `user`: who the process runs as; `poll`: waiting.

mod lent;
mod link;
mod nats;
mod place;
mod poll;
mod postgres;
mod process;
mod rabbitmq;
mod redis;
mod user;
mod watchdog;

pub use lent::{
    Lent, NATS_VARIABLE, POSTGRES_VARIABLE, RABBITMQ_VARIABLE, REDIS_CLUSTER_VARIABLE, REDIS_VARIABLE,
    nats_url, postgres_url, rabbitmq_url, redis_cluster_url, redis_url,
};
pub use link::Link;
pub use nats::Nats;
pub use postgres::{PgBouncer, PoolMode, Postgres, Standby};
pub use rabbitmq::RabbitMq;
pub use redis::{AppendFsync, Redis, RedisCluster, RedisWithSentinel, Sentinel};
