//! `cargo xtask prove …` of the proxy: attacks on the release binary, each with a control that must be caught.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use semel_abuse::Step;
use test_services::{AppendFsync, Postgres, Redis};

use crate::crash::Progress;
use crate::needs;
use crate::run::{cargo, passed, started};

/// How many keys a crowd gathers around, one after the other.
const CROWD_KEYS: usize = 20;

/// An attack on the proxy.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Attack {
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

pub(crate) fn run(attack: &Attack, binary: Option<&Path>, only: Option<&str>) -> Result<()> {
    let binary = binary.map_or_else(release, |binary| Ok(binary.to_owned()))?;
    match *attack {
        Attack::Disconnects { count } => {
            told("disconnects", count, |step| semel_abuse::disconnects(&binary, count, step))
        }
        Attack::Smuggling { count } => {
            let count = count.max(semel_abuse::shapes());
            told("smuggling", count, |step| semel_abuse::smuggling(&binary, count, step))
        }
        Attack::Slow { count } => told("slow", count, |step| semel_abuse::slow(&binary, count, step)),
        Attack::ManyKeys { count } => {
            told("many-keys", semel_abuse::keys(count), |step| semel_abuse::many_keys(&binary, count, step))
        }
        Attack::Kill { count } => told("kill", count, |step| semel_abuse::kill(&binary, count, step)),
        Attack::SlowServer { count } => {
            told("slow-server", count, |step| semel_abuse::slow_server(&binary, count, step))
        }
        Attack::Waiting { count } => {
            told("waiting", count, |step| semel_abuse::waiting(&binary, "memory:", count, step))
        }
        Attack::Crowd { count } => crowds(&binary, count, only),
    }
}

/// Runs it with a bar, and says what came of it.
fn told<R: ToString>(
    what: &'static str,
    steps: usize,
    attack: impl FnOnce(Step<'_>) -> Result<R>,
) -> Result<()> {
    started(what);
    let bar = Progress::new(what, steps as u64);
    let done = attack(&|| bar.step());
    drop(bar);
    passed(&done?.to_string());
    Ok(())
}

fn crowds(binary: &Path, count: usize, only: Option<&str>) -> Result<()> {
    needs::for_tests()?;
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    if is_wanted("postgres") {
        let server = Postgres::start()?;
        crowd(binary, "crowd on PostgreSQL", &server.url(), count)?;
    }
    if is_wanted("redis") {
        let server = Redis::start(AppendFsync::Always)?;
        crowd(binary, "crowd on Redis", &server.url(), count)?;
    }
    Ok(())
}

fn crowd(binary: &Path, what: &'static str, store: &str, count: usize) -> Result<()> {
    told(what, CROWD_KEYS, |step| semel_abuse::crowd(binary, store, count, CROWD_KEYS, step))
}

/// The release binary, built now.
pub(crate) fn release() -> Result<PathBuf> {
    cargo(["build", "--release", "--package", "semel-cli"]).show()?;
    // We were built by the same cargo, into the same folder, and lie beside the other profile's.
    let us = std::env::current_exe().context("cannot tell where this program is")?;
    let target = us.parent().and_then(Path::parent).context("this program is in no target folder")?;
    let binary = target.join("release").join("semel");
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}
