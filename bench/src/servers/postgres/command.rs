//! The order of things: start a server, load, measure, count, judge, print, write.

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::cratestack::Cratestack;
use super::per_call::PerCall;
use super::pool::connect;
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
    title: "semel on PostgreSQL, beside the per-call pattern and cratestack-sqlx",
    about: "Every contestant has a table of its own on one server with durable settings: an acknowledged commit is on \
            disk.\nPer call is what projects write themselves: upsert, select when no row came back, update; prepared \
            statements, a pool of 32. cratestack-sqlx 0.8.15 is\nasked as published, with a pool of 32 that does not test \
            connections before it lends them. Names of keys are in order, which suits an index on text; semel's is on a \
            digest.",
};

/// Everything that is open while the contestants work.
struct Opened {
    client: Client,
    store: PostgresStore,
    entries: Vec<Entry>,
}

/// Measures everything, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &ServerSettings) -> Result<()> {
    let server = Postgres::start()?;
    let filesystem = filesystem(&server.folder().canonicalize()?, "set TMPDIR to a folder on a disk")?;
    eprintln!("the server is in {}, {filesystem}", server.folder().display());
    let runtime = runtime(THREADS)?;
    let bar = progress(3 + rounds::steps(3, settings));
    let opened = runtime.block_on(open(&server.url(), settings.keys, &bar))?;
    until_quiet();
    let neighbours_share = rounds::neighbours_share();
    let rates = rounds::measure(&opened.entries, settings, &runtime, &bar)?;
    bar.set_message("counting");
    let counted = count(&opened, settings.keys, &runtime)?;
    let version: String =
        runtime.block_on(opened.client.query_one("SHOW server_version", &[]))?.try_get(0)?;
    bar.finish_and_clear();
    let results = Results {
        facts: Facts::of_this_machine(),
        server: format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default()),
        filesystem,
        neighbours_share,
        settings: settings.clone(),
        bars: judge(&rates),
        rates,
        counted,
    };
    let table = markdown(&WORDS, &results);
    print!("{table}");
    keep(settings.results.as_deref(), "postgres", &table, &chart(&WORDS, &results), &results)
}

/// Opens and loads all of them, and leaves the server as it is after a while of peace.
async fn open(url: &str, keys: u64, bar: &ProgressBar) -> Result<Opened> {
    let step = |name: &str| {
        bar.set_message(format!("loading {name}"));
        bar.inc(1);
    };
    migrate(url).await?;
    let store = PostgresStore::connect(url).await?;
    let mut entries = vec![Entry::semel(store.clone(), "", keys).await?];
    step("per call");
    entries.push(Entry::new("per call, pool of 32", "", PerCall::load(url, keys).await?, keys));
    step("cratestack-sqlx");
    entries.push(Entry::new("cratestack-sqlx", "", Cratestack::load(url, keys).await?, keys));
    step("nothing more");
    let client = connect(url).await?;
    for chore in ["VACUUM ANALYZE", "CHECKPOINT"] {
        client.batch_execute(chore).await?;
    }
    Ok(Opened { client, store, entries })
}

/// What the tables hold, against what callers were told.
fn count(opened: &Opened, keys: u64, runtime: &Runtime) -> Result<Vec<Counted>> {
    let Opened { client, store, entries } = opened;
    let [semel, per_call, cratestack] = entries.as_slice() else {
        return Err(anyhow::anyhow!("there are three contestants"));
    };
    Ok(vec![
        checked(semel, keys, runtime, async || of_store(store).await).context("counting")?,
        checked(per_call, keys, runtime, async || PerCall::census(client).await)?,
        checked(cratestack, keys, runtime, async || Cratestack::census(client).await)?,
    ])
}

fn judge(rates: &[Rate]) -> Vec<Bar> {
    vec![
        bars::cycles(rates, "", 256, 4.0),
        bars::cycles(rates, "", 32, 1.2),
        bars::cycles(rates, "", 1, 0.8),
        bars::replays(rates, "", 256, 4.0),
        bars::cpu(rates, "", 256, 0.35),
    ]
}
