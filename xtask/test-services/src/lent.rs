//! The servers that all tests of a run share: those of `cargo xtask test`, or else some of our own.

use std::env;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::{AppendFsync, Nats, Postgres, RabbitMq, Redis, RedisCluster};

/// Where `cargo xtask test` says which PostgreSQL it started.
pub const POSTGRES_VARIABLE: &str = "SEMEL_TEST_POSTGRES";
/// Where it says which Redis.
pub const REDIS_VARIABLE: &str = "SEMEL_TEST_REDIS";
/// Where it says which Redis Cluster.
pub const REDIS_CLUSTER_VARIABLE: &str = "SEMEL_TEST_REDIS_CLUSTER";
/// Where it says which NATS.
pub const NATS_VARIABLE: &str = "SEMEL_TEST_NATS";
/// Where it says which RabbitMQ.
pub const RABBITMQ_VARIABLE: &str = "SEMEL_TEST_RABBITMQ";

/// The address of a server that others use too: leave it as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent(String);

impl Deref for Lent {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The PostgreSQL that the environment names, or else one that lives as long as this process.
pub fn postgres_url() -> Result<Lent> {
    static OWN: Mutex<Option<Postgres>> = Mutex::new(None);
    lend(POSTGRES_VARIABLE, &OWN, Postgres::start, Postgres::url)
}

/// The Redis that the environment names, or else one that lives as long as this process.
pub fn redis_url() -> Result<Lent> {
    static OWN: Mutex<Option<Redis>> = Mutex::new(None);
    lend(REDIS_VARIABLE, &OWN, || Redis::start(AppendFsync::Always), Redis::url)
}

/// The Redis Cluster that the environment names, or else one that lives as long as this process.
pub fn redis_cluster_url() -> Result<Lent> {
    static OWN: Mutex<Option<RedisCluster>> = Mutex::new(None);
    lend(REDIS_CLUSTER_VARIABLE, &OWN, || RedisCluster::start(AppendFsync::Always), RedisCluster::url)
}

/// The NATS that the environment names, or else one that lives as long as this process.
pub fn nats_url() -> Result<Lent> {
    static OWN: Mutex<Option<Nats>> = Mutex::new(None);
    lend(NATS_VARIABLE, &OWN, Nats::start, Nats::url)
}

/// The RabbitMQ that the environment names, or else one that lives as long as this process.
pub fn rabbitmq_url() -> Result<Lent> {
    static OWN: Mutex<Option<RabbitMq>> = Mutex::new(None);
    lend(RABBITMQ_VARIABLE, &OWN, RabbitMq::start, RabbitMq::url)
}

fn lend<S>(
    variable: &str,
    own: &Mutex<Option<S>>,
    start: impl FnOnce() -> Result<S>,
    url: impl FnOnce(&S) -> String,
) -> Result<Lent> {
    if let Ok(named) = env::var(variable) {
        return Ok(Lent(named));
    }
    // Never dropped: its watchdog sees our end.
    let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
    if own.is_none() {
        *own = Some(start()?);
    }
    Ok(Lent(own.as_ref().map(url).unwrap_or_default()))
}
