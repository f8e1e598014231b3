//! The order of things: start servers, load, measure, count, judge, print, write.

use anyhow::{Context, Result};
use semel_redis::RedisStore;
use test_services::{AppendFsync, Redis};
use tokio::runtime::Runtime;

use super::per_call::{self, PerCall};
use crate::args::ServerSettings;
use crate::report::{Bar, Facts, filesystem, keep, progress};
use crate::runtime::runtime;
use crate::servers::bars;
use crate::servers::census::{checked, of_store};
use crate::servers::entry::Entry;
use crate::servers::markdown::{Words, markdown};
use crate::servers::panels::chart;
use crate::servers::results::{Counted, Rate, Results};
use crate::servers::rounds::{self, THREADS};
use crate::window::until_quiet;

const WORDS: Words = Words {
    title: "semel on Redis, beside SET NX, GET and SET",
    about: "There are two servers, one with appendfsync everysec and one with always, and both contestants are on \
            each. The other one is what projects write\nthemselves, on one multiplexed connection: SET NX PX to claim, GET \
            when the key was there, SET to complete. It has no versions, and whoever comes\nlate overwrites.",
};
const EVERYSEC: &str = "everysec";
const ALWAYS: &str = "always";

/// One server, and semel's store on it.
struct Opened {
    server: Redis,
    store: RedisStore,
}

/// Measures everything, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &ServerSettings) -> Result<()> {
    let runtime = runtime(THREADS)?;
    let bar = progress(2 + rounds::steps(4, settings));
    let (mut opened, mut entries) = (Vec::new(), Vec::new());
    for (setting, fsync) in [(EVERYSEC, AppendFsync::EverySecond), (ALWAYS, AppendFsync::Always)] {
        bar.set_message(format!("loading, {setting}"));
        let server = Redis::start(fsync)?;
        let (store, loaded) = runtime.block_on(load(&server.url(), setting, settings.keys))?;
        opened.push(Opened { server, store });
        entries.extend(loaded);
        bar.inc(1);
    }
    let server = &opened.first().context("there are two servers")?.server;
    let filesystem = filesystem(&server.folder().canonicalize()?, "set TMPDIR to a folder on a disk")?;
    eprintln!("the servers are beside {}, {filesystem}", server.folder().display());
    until_quiet();
    let neighbours_share = rounds::neighbours_share();
    let rates = rounds::measure(&entries, settings, &runtime, &bar)?;
    bar.set_message("counting");
    let counted = count(&opened, &entries, settings.keys, &runtime)?;
    let version = version(server)?;
    bar.finish_and_clear();
    let results = Results {
        facts: Facts::of_this_machine(),
        server: format!("Redis {version}"),
        filesystem,
        neighbours_share,
        settings: settings.clone(),
        bars: judge(&rates),
        rates,
        counted,
    };
    let table = markdown(&WORDS, &results);
    print!("{table}");
    keep(settings.results.as_deref(), "redis", &table, &chart(&WORDS, &results), &results)
}

async fn load(url: &str, setting: &'static str, keys: u64) -> Result<(RedisStore, [Entry; 2])> {
    let store = RedisStore::connect(url).await?;
    let semel = Entry::semel(store.clone(), setting, keys).await?;
    let per_call = Entry::new("SET NX, GET, SET", setting, PerCall::load(url, keys).await?, keys);
    Ok((store, [semel, per_call]))
}

/// What the servers hold, against what callers were told.
fn count(opened: &[Opened], entries: &[Entry], keys: u64, runtime: &Runtime) -> Result<Vec<Counted>> {
    let mut counted = Vec::new();
    for (Opened { server, store }, pair) in opened.iter().zip(entries.chunks_exact(2)) {
        let [semel, per_call] = pair else { continue };
        counted.push(checked(semel, keys, runtime, async || of_store(store).await)?);
        let url = server.url();
        counted.push(checked(per_call, keys, runtime, async || per_call::census(&url).await)?);
    }
    Ok(counted)
}

/// Which version this server says it is.
pub(crate) fn version(server: &Redis) -> Result<String> {
    let info = server.ask(&["INFO", "server"])?.concat();
    let line = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(line.context("the server does not say its version")?.trim().to_owned())
}

fn judge(rates: &[Rate]) -> Vec<Bar> {
    vec![
        bars::cycles(rates, EVERYSEC, 256, 1.2),
        bars::cycles(rates, ALWAYS, 256, 1.2),
        bars::cycles(rates, EVERYSEC, 1, 0.85),
        bars::cycles(rates, ALWAYS, 1, 0.85),
    ]
}
