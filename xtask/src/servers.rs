//! `cargo xtask servers`: the throwaway servers that tests share, for whoever runs tests by hand.

use std::io::Read;

use anyhow::{Context, Result};
use test_services::{
    AppendFsync, NATS_VARIABLE, Nats, POSTGRES_VARIABLE, Postgres, RABBITMQ_VARIABLE, REDIS_CLUSTER_VARIABLE,
    REDIS_VARIABLE, RabbitMq, Redis, RedisCluster,
};

use crate::needs;
use crate::run::{self, Run};

/// Start PostgreSQL, Redis, a Redis Cluster, NATS and RabbitMQ, and say where they are.
///
/// They run until Ctrl-C or the end of input, on ports of their own on 127.0.0.1, with durable settings, and nothing is
/// left of them. Tests that find the printed variables in their environment use these servers; the others start their own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    needs::for_tests()?;
    let servers = Servers::start()?;
    for (name, url) in servers.names() {
        println!("export {name}={url}");
    }
    run::started("they run until Ctrl-C, or the end of input");
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot wait for the end of input")?;
    Ok(())
}

/// One of each; stopped and gone when dropped.
pub(crate) struct Servers {
    postgres: Postgres,
    redis: Redis,
    cluster: RedisCluster,
    nats: Nats,
    rabbitmq: RabbitMq,
}

impl Servers {
    pub(crate) fn start() -> Result<Self> {
        let fsync = AppendFsync::Always;
        let (postgres, redis) = (Postgres::start()?, Redis::start(fsync)?);
        let (nats, rabbitmq) = (Nats::start()?, RabbitMq::start()?);
        Ok(Self { postgres, redis, cluster: RedisCluster::start(fsync)?, nats, rabbitmq })
    }

    /// The variables that tests look for, and where the servers are.
    fn names(&self) -> [(&'static str, String); 5] {
        [
            (POSTGRES_VARIABLE, self.postgres.url()),
            (REDIS_VARIABLE, self.redis.url()),
            (REDIS_CLUSTER_VARIABLE, self.cluster.url()),
            (NATS_VARIABLE, self.nats.url()),
            (RABBITMQ_VARIABLE, self.rabbitmq.url()),
        ]
    }

    /// The same program, told where they are.
    pub(crate) fn name_to(&self, run: Run) -> Run {
        self.names().into_iter().fold(run, |run, (name, url)| run.env(name, &url))
    }
}
