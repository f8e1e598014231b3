//! Attacks as commands: `cargo xtask prove disconnects` and others.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use test_services::{AppendFsync, Postgres, Redis};

use super::{
    crowd, disconnects, keys, kill, many_keys, proxy_kills, shapes, slow, slow_server, smuggling, waiting,
};
use crate::attacks::race::Step;
use crate::progress::with_progress;
use crate::release;

/// How many keys a crowd gathers around, one after the other.
const CROWD_KEYS: usize = 20;
/// How late the last of those who wait may be told.
const SOON: Duration = Duration::from_millis(100);

/// An attack on the proxy.
#[derive(Debug, clap::Subcommand)]
pub enum Attack {
    /// Clients hang up at each byte of a request and of its answer, and ask again: no key is called for twice.
    Disconnects {
        /// How many.
        #[arg(default_value_t = 2_000)]
        count: usize,
    },
    /// Requests that can be read in two ways, each followed by a probe: none is read in two ways.
    Smuggling {
        /// How many shapes at least; all that there are in any case.
        #[arg(default_value_t = 200)]
        count: usize,
    },
    /// Connections that dawdle: others are served meanwhile, memory is bounded, and the slow ones are closed.
    Slow {
        /// How many at once.
        #[arg(default_value_t = 10_000)]
        count: usize,
    },
    /// One caller with keys without end: memory is bounded, and others are served.
    ManyKeys {
        /// How many on the memory store; a tenth on the file store.
        #[arg(default_value_t = 1_000_000)]
        count: usize,
    },
    /// `kill -9` of the proxy again and again under load: with a probe every client ends with one effect and one answer, and
    /// without one no key has two effects.
    ProxyKills {
        /// How often, with a probe and without one each.
        #[arg(default_value_t = 50)]
        count: usize,
    },
    /// `kill -9` of the proxy while requests run: what was acknowledged is replayed, what died runs again after its lease.
    Kill {
        /// How often.
        #[arg(default_value_t = 20)]
        count: usize,
    },
    /// The same before the claim server.
    SlowServer {
        /// How many at once.
        #[arg(default_value_t = 10_000)]
        count: usize,
    },
    /// A crowd waits (`?wait=60s`) for one key on the claim server: all are told within 100 ms of its completion.
    Waiting {
        /// How many at once.
        #[arg(default_value_t = 1_000)]
        count: usize,
    },
    /// A crowd under one key through two proxies on one PostgreSQL, and on one Redis: one call.
    Crowd {
        /// How many at once.
        #[arg(default_value_t = 100)]
        count: usize,
    },
}

/// Runs it against this binary, or against the release one that is built first.
pub(crate) fn run(attack: &Attack, binary: Option<&Path>, only: Option<&str>) -> Result<()> {
    let binary = binary.map_or_else(release::binary, |binary| Ok(binary.to_owned()))?;
    match *attack {
        Attack::Disconnects { count } => {
            with_progress("disconnects", count, |step| disconnects(&binary, count, step))
        }
        Attack::Smuggling { count } => {
            let count = count.max(shapes());
            with_progress("smuggling", count, |step| smuggling(&binary, count, step))
        }
        Attack::Slow { count } => with_progress("slow", count, |step| slow(&binary, count, step)),
        Attack::ManyKeys { count } => {
            with_progress("many-keys", keys(count), |step| many_keys(&binary, count, step))
        }
        Attack::ProxyKills { count } => {
            with_progress("proxy-kills", count.saturating_mul(2), |step| proxy_kills(&binary, count, step))
        }
        Attack::Kill { count } => with_progress("kill", count, |step| kill(&binary, count, step)),
        Attack::SlowServer { count } => {
            with_progress("slow-server", count, |step| slow_server(&binary, count, step))
        }
        Attack::Waiting { count } => {
            let soon = |step: Step<'_>| waiting(&binary, "memory:", count, step)?.within(SOON);
            with_progress("waiting", count, soon)
        }
        Attack::Crowd { count } => crowds(&binary, count, only),
    }
}

fn crowds(binary: &Path, count: usize, only: Option<&str>) -> Result<()> {
    xtask::needs::for_tests()?;
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    if is_wanted("postgres") {
        let server = Postgres::start()?;
        one_crowd(binary, "crowd on PostgreSQL", &server.url(), count)?;
    }
    if is_wanted("redis") {
        let server = Redis::start(AppendFsync::Always)?;
        one_crowd(binary, "crowd on Redis", &server.url(), count)?;
    }
    Ok(())
}

fn one_crowd(binary: &Path, what: &'static str, store: &str, count: usize) -> Result<()> {
    with_progress(what, CROWD_KEYS, |step| crowd(binary, store, count, CROWD_KEYS, step))
}
