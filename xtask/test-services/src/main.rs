//! One of each server, until the input ends: prints where they are, for `cargo xtask servers` and `cargo xtask test`.

use std::io::Read;

use anyhow::{Context, Result};
use test_services::{
    AppendFsync, NATS_VARIABLE, Nats, POSTGRES_VARIABLE, Postgres, RABBITMQ_VARIABLE, REDIS_CLUSTER_VARIABLE,
    REDIS_VARIABLE, RabbitMq, Redis, RedisCluster,
};

fn main() -> Result<()> {
    let fsync = AppendFsync::Always;
    let (postgres, redis, cluster) = (Postgres::start()?, Redis::start(fsync)?, RedisCluster::start(fsync)?);
    let (nats, rabbitmq) = (Nats::start()?, RabbitMq::start()?);
    for (name, url) in [
        (POSTGRES_VARIABLE, postgres.url()),
        (REDIS_VARIABLE, redis.url()),
        (REDIS_CLUSTER_VARIABLE, cluster.url()),
        (NATS_VARIABLE, nats.url()),
        (RABBITMQ_VARIABLE, rabbitmq.url()),
    ] {
        println!("export {name}={url}");
    }
    println!("# They run until Ctrl-C, or the end of input.");
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot wait for the end of input")?;
    Ok(())
}
