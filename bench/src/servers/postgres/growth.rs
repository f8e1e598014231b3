//! semel over tables of several sizes: cycles a second, how long claims wait, and how long sweeping takes.

use std::time::Duration;

use anyhow::{Result, ensure};
use semel::Semel;
use semel::store::Store;
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;
use tokio_postgres::Client;

use super::server_cost::ServerCost;
use super::{SEMEL, connect};
use crate::args::PostgresArgs;
use crate::callers::{CYCLES, Entry, THREADS, runtime, until_quiet};
use crate::contestants::Engine;
use crate::inputs::Response;
use crate::report::{
    Case, Column, MS, Metric, Page, Rows, Sample, Samples, THOUSANDTHS, WHOLE, drive, float,
};
use crate::timing::Stopwatch;

const GROWTH: &str = "growth";
const CALLERS: u64 = 256;
/// How many records are past their keep.
const EXPIRED: u64 = 100_000;
const SWEPT_TOGETHER: usize = 1_024;
const LOADED_TOGETHER: u64 = 1_000_000;
/// Loading leaves fewer checkpoints behind; durable as ever.
const SETTINGS: [(&str, &str); 1] = [("max_wal_size", "2GB")];

/// Without indexes, which are built at once at the end. Pages are as full as completed runs leave them.
const BEFORE_LOAD: &str = "ALTER TABLE semel_records DROP CONSTRAINT semel_records_id; \
     DROP INDEX semel_records_keep_until; ALTER TABLE semel_records SET (fillfactor = 75)";
const AFTER_LOAD: [&str; 5] = [
    "ALTER TABLE semel_records ADD CONSTRAINT semel_records_id PRIMARY KEY (id)",
    "CREATE INDEX semel_records_keep_until ON semel_records (keep_until) WHERE keep_until IS NOT NULL",
    "ALTER TABLE semel_records SET (fillfactor = 50)",
    "VACUUM ANALYZE",
    "CHECKPOINT",
];
/// Rows as completed runs leave them, for the keys from $1 to $2; with the names, the digests and the outcome of
/// `inputs`. They are kept for $3 seconds from now on.
const LOAD: &str = "INSERT INTO semel_records (version, fence, mismatches, pardoned, duplicates, first_seen_at,
        changed_at, since, keep_until, permit_id, retention, attempt, id, scope, operation, name, state, lapse,
        fingerprint, owner, outcome_kind, outcome, grant_fence, granted_at)
    SELECT version, version, 0, 0, 0, now(), now(), now(), now() + make_interval(secs => $3), gen_random_uuid(),
        interval '1 day', 1, sha256(int8send(4) || 'acme' || int8send(6) || 'charge' || int8send(13) || name::bytea),
        '{acme}', 'charge', name, 'done', 'rerun',
        substr(sent, 8, 1) || substr(sent, 7, 1) || substr(sent, 6, 1) || substr(sent, 5, 1) || '\\x00000000'
            || decode(repeat('5e', 24), 'hex'),
        'pid 1042', 'success', $4, version, now()
    FROM (SELECT nextval('semel_version') AS version, int8send(number) AS sent, 'order-'
            || substr('0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', (number / 1000000)::integer + 1, 1)
            || lpad((number % 1000000)::text, 6, '0') AS name
        FROM generate_series($1::bigint, $2::bigint) AS number) AS loaded";
const DISK: &str = "SELECT pg_total_relation_size('semel_records')";

pub(super) fn measure(args: &PostgresArgs, rows: &mut Rows) -> Result<()> {
    let cases = args.growth.iter().map(|keys| (Case::new(GROWTH, SEMEL).load(*keys), ())).collect();
    drive(1, &[cases], rows, &mut |case, ()| measure_size(args, case))
}

fn measure_size(args: &PostgresArgs, case: Case) -> Result<Samples> {
    let (server, runtime, keys) = (Postgres::start_with(&SETTINGS)?, runtime(THREADS)?, case.load);
    let url = server.url();
    let (client, store) = runtime.block_on(async {
        migrate(&url).await?;
        let client = connect(&url).await?;
        load(&client, keys).await?;
        anyhow::Ok((client, PostgresStore::connect(&url).await?))
    })?;
    let disk = runtime.block_on(client.query_one(DISK, &[]))?.try_get::<_, i64>(0)?;
    let mut samples =
        vec![Sample::from([(Metric::DiskBytes, float(u64::try_from(disk)?) / float(keys + EXPIRED))])];
    let engine = {
        let _inside = runtime.enter();
        let semel = Semel::builder(store.clone()).replays_kept(0, 0).no_sweep().build()?;
        Engine::over(semel, Response::new().body)
    };
    let entry = Entry::going_on(SEMEL, engine, keys, keys + EXPIRED);
    let cost = ServerCost::of(&server, &client)?;
    let window = Case::new(CYCLES, SEMEL).load(CALLERS);
    until_quiet();
    for _ in 0..args.servers.run.rounds {
        let span = Duration::from_millis(args.servers.window_ms);
        let (found, spent) = cost.window(&runtime, &entry, || entry.window(window, &runtime, span))?;
        samples.extend([found, spent]);
    }
    samples.push(runtime.block_on(sweep(&store))?);
    Ok(samples.into_iter().map(|sample| (case, sample)).collect())
}

/// Fills the table with done keys, and as many behind them that are past their keep.
async fn load(client: &Client, keys: u64) -> Result<()> {
    const DAY: f64 = 86_400.0;
    let outcome = Response::new().body;
    client.batch_execute(BEFORE_LOAD).await?;
    let chunks = (0..keys).step_by(usize::try_from(LOADED_TOGETHER)?);
    let chunks = chunks.map(|first| (first, keys.min(first + LOADED_TOGETHER), DAY));
    for (first, end, kept) in chunks.chain([(keys, keys + EXPIRED, -1.0)]) {
        let (first, last) = (i64::try_from(first)?, i64::try_from(end - 1)?);
        client.execute(LOAD, &[&first, &last, &kept, &outcome]).await?;
    }
    for step in AFTER_LOAD {
        client.batch_execute(step).await?;
    }
    Ok(())
}

/// Removes all that is past its keep.
async fn sweep(store: &PostgresStore) -> Result<Sample> {
    let (whole, mut removed, mut longest) = (Stopwatch::start(), 0_u64, Duration::ZERO);
    loop {
        let watch = Stopwatch::start();
        let swept = store.sweep(SWEPT_TOGETHER).await?.value;
        longest = longest.max(watch.elapsed());
        removed += swept.removed as u64;
        if !swept.more_left {
            break;
        }
    }
    ensure!(removed == EXPIRED, "{removed} of {EXPIRED} records that are past their keep were removed");
    Ok(Sample::from([
        (Metric::Seconds, whole.elapsed().as_secs_f64()),
        (Metric::LongestBatchMs, longest.as_secs_f64() * 1e3),
    ]))
}

pub(super) fn describe(page: &mut Page) {
    let columns = [
        Column::load("keys"),
        Column::median("cycles/s", Metric::PerSecond, WHOLE),
        Column::range(Metric::PerSecond, WHOLE),
        Column::median("claim p50 ms", Metric::P50Us, MS),
        Column::median("p99 ms", Metric::P99Us, MS),
        Column::median("server CPU µs", Metric::ServerCpuUs, WHOLE),
        Column::median("log bytes", Metric::WalBytes, WHOLE),
        Column::median("sweep s", Metric::Seconds, THOUSANDTHS),
        Column::median("longest batch ms", Metric::LongestBatchMs, WHOLE),
        Column::median("disk bytes a key", Metric::DiskBytes, WHOLE),
    ];
    page.table(GROWTH, &columns);
}
