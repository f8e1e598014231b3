//! `prove`: histories and sweeping on real servers, and attacks on the proxy, in any number.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use test_services::{AppendFsync, Postgres, Redis, RedisCluster};

use xtask::needs;
use xtask::run::started;

use crate::attacks::{self, Attack};
use crate::stores;

/// Prove a store on a real server (PostgreSQL, Redis and Redis Cluster, one after the other), or attack the proxy.
///
/// A few of each, and the controls that must be caught, run with every change; this is for many.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// Which store alone: `postgres`, `redis` or `cluster`.
    #[arg(long, global = true)]
    only: Option<String>,
    /// Attack this binary, instead of the release one that is built first.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sixteen clients at the same time, a thousand operations each history: every answer must fit one order of events.
    Histories {
        /// How many histories a store.
        #[arg(default_value_t = 200)]
        count: u64,
    },
    /// Two sweepers and eight claimers: nobody deadlocks, nothing live is swept, and what the claimers wait.
    Sweeping {
        /// How many records that are past their keep.
        #[arg(default_value_t = 1_000_000)]
        records: u64,
    },
    #[command(flatten)]
    Proxy(Attack),
}

/// Proves it.
pub fn run(args: &Args) -> Result<()> {
    let (proof, count) = match &args.what {
        What::Histories { count } => ("histories", *count),
        What::Sweeping { records } => ("sweeping", *records),
        What::Proxy(attack) => return attacks::run(attack, args.binary.as_deref(), args.only.as_deref()),
    };
    needs::for_tests()?;
    let is_wanted = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
    if is_wanted("postgres") {
        let server = Postgres::start()?;
        prove(proof, "PostgreSQL", &server.url(), count)?;
    }
    if is_wanted("redis") {
        let server = Redis::start(AppendFsync::Always)?;
        prove(proof, "Redis", &server.url(), count)?;
    }
    if is_wanted("cluster") {
        let servers = RedisCluster::start(AppendFsync::Always)?;
        prove(proof, "Redis Cluster", &servers.url(), count)?;
    }
    Ok(())
}

fn prove(proof: &str, name: &str, url: &str, count: u64) -> Result<()> {
    started(&format!("{proof} on {name}"));
    tokio::runtime::Runtime::new()?.block_on(async {
        match proof {
            "histories" => stores::histories(url, count).await,
            _ => stores::sweeping(url, usize::try_from(count)?).await,
        }
    })
}
