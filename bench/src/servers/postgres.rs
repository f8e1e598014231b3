//! semel on PostgreSQL, beside the pattern that projects write themselves, and a published crate of that kind.

mod growth;
mod server_cost;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use cratestack_core::{IdempotencyStore, ReservationOutcome};
use cratestack_sqlx::SqlxIdempotencyStore;
use cratestack_sqlx::sqlx::postgres::PgPoolOptions;
use cratestack_sqlx::sqlx::types::Uuid;
use semel_postgres::{PostgresStore, migrate};
use server_cost::ServerCost;
use test_services::Postgres;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::{CALLERS, Census, SEMEL, batches, census_of, check, describe, load_semel};
use crate::args::{PostgresArgs, PostgresPart, ServerArgs};
use crate::callers::{
    CYCLES, Entry, REPLAYS, THREADS, at_least_best_peer, cpu_at_most_best_peer, groups, runtime, until_quiet,
};
use crate::contestants::{Claimed, Contestant};
use crate::folder::filesystem;
use crate::inputs::{self, BODY_BYTES, Name, OPERATION, Response, SCOPE};
use crate::report::{Case, Page, drive};

const PER_CALL: &str = "per call, pool of 32";
const CRATESTACK: &str = "cratestack-sqlx";
const STATUS: u16 = 201;
/// How many connections those have that call the server for each call.
const CONNECTIONS: u32 = 32;

pub(crate) fn run(args: &PostgresArgs) -> Result<()> {
    let server = Postgres::start()?;
    let filesystem = filesystem(&server.folder().canonicalize()?, "set TMPDIR to a folder on a disk")?;
    eprintln!("the server is in {}, {filesystem}", server.folder().display());
    let template = concat!(
        include_str!("../pages/postgres.md"),
        include_str!("../pages/servers.md"),
        include_str!("../pages/postgres-server.md")
    );
    let mut page = Page::new("postgres", template, args)?;
    page.fact("filesystem", filesystem);
    page.fact("PostgreSQL", version(&server)?);
    if args.has(PostgresPart::Throughput) {
        measure_throughput(&args.servers, &server, &mut page)?;
    }
    drop(server);
    if args.has(PostgresPart::Growth) && !args.growth.is_empty() {
        growth::measure(args, &mut page.rows)?;
        growth::describe(&mut page);
    }
    page.is_part = args.only.is_some();
    page.publish(args.servers.run.results.as_deref())
}

fn measure_throughput(args: &ServerArgs, server: &Postgres, page: &mut Page) -> Result<()> {
    let (runtime, url, keys) = (runtime(THREADS)?, server.url(), args.keys);
    let (client, store, entries) = runtime.block_on(open(&url, keys))?;
    measure(&entries, args, (&runtime, &ServerCost::of(server, &client)?), page)?;
    let [semel, per_call, cratestack] = &entries;
    let rows = &mut page.rows;
    check(semel, keys, &runtime, rows, async || census_of(&store).await)?;
    check(per_call, keys, &runtime, rows, async || count(&client, PerCall::COUNT).await)?;
    check(cratestack, keys, &runtime, rows, async || count(&client, Cratestack::COUNT).await)?;
    let (rows, semel) = (&page.rows, Case::new(CYCLES, SEMEL).load(256));
    page.bars = vec![
        at_least_best_peer(rows, semel, 4.0),
        at_least_best_peer(rows, semel.load(32), 1.5),
        at_least_best_peer(rows, semel.load(1), 0.85),
        at_least_best_peer(rows, semel.work(REPLAYS), 4.0),
        cpu_at_most_best_peer(rows, semel, 0.35),
        server_cost::wal_bar(rows, semel),
    ];
    describe(page);
    server_cost::describe(page);
    Ok(())
}

/// As on other servers, and what each window cost this one.
fn measure(
    entries: &[Entry],
    args: &ServerArgs,
    (runtime, cost): (&Runtime, &ServerCost<'_>),
    page: &mut Page,
) -> Result<()> {
    until_quiet();
    page.fact_other_processes();
    let span = Duration::from_millis(args.window_ms);
    let groups = groups(entries, &[CYCLES, REPLAYS], &CALLERS);
    drive(args.run.rounds, &groups, &mut page.rows, &mut |case, entry| {
        let (window, spent) = cost.window(runtime, entry, || entry.window(case, runtime, span))?;
        let spent = (case.work == CYCLES).then_some((case.work(server_cost::SERVER), spent));
        Ok([(case, window)].into_iter().chain(spent).collect())
    })
}

pub(crate) fn version(server: &Postgres) -> Result<String> {
    let version = server.ask("SHOW server_version")?;
    Ok(version.split_whitespace().next().context("the server has no version")?.to_owned())
}

/// Opens and loads all contestants, and leaves the server as it is after a while of peace.
async fn open(url: &str, keys: u64) -> Result<(Client, PostgresStore, [Entry; 3])> {
    migrate(url).await?;
    let store = PostgresStore::connect(url).await?;
    let entries = [
        load_semel(store.clone(), keys).await?,
        Entry::new(PER_CALL, PerCall::load(url, keys).await?, keys),
        Entry::new(CRATESTACK, Cratestack::load(url, keys).await?, keys),
    ];
    let client = connect(url).await?;
    for chore in ["VACUUM ANALYZE", "CHECKPOINT"] {
        client.batch_execute(chore).await?;
    }
    Ok((client, store, entries))
}

/// All rows and those that are done, by a statement that takes the length of an outcome.
async fn count(client: &Client, statement: &str) -> Result<Census> {
    let row = client.query_one(statement, &[&i32::try_from(BODY_BYTES)?]).await?;
    let number = |column| anyhow::Ok(u64::try_from(row.try_get::<_, i64>(column)?)?);
    Ok(Census { records: number(0)?, done: number(1)?, ..Census::default() })
}

/// Writes the keys below `keys` as done, by a statement that takes names, fingerprints and the outcome.
async fn load(client: &Client, statement: &str, keys: u64, key: fn(u64) -> String) -> Result<()> {
    let outcome = Response::new().body;
    for numbers in batches(keys) {
        let names: Vec<String> = numbers.clone().map(key).collect();
        let fingerprints: Vec<Vec<u8>> = numbers.map(|number| inputs::digest(number).to_vec()).collect();
        client.execute(statement, &[&names, &fingerprints, &outcome]).await?;
    }
    Ok(())
}

/// No index but that of the key: removing old rows would need another.
const TABLE: &str = "CREATE TABLE per_call (
    key text PRIMARY KEY, token bigint NOT NULL, fingerprint bytea NOT NULL, state text NOT NULL, outcome bytea,
    created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL)";
const LOAD_PER_CALL: &str = "INSERT INTO per_call
    SELECT key, 0, fingerprint, 'done', $3, now(), now() + interval '1 day'
    FROM unnest($1::text[], $2::bytea[]) AS loaded (key, fingerprint)";
const UPSERT: &str = "INSERT INTO per_call (key, token, fingerprint, state, created_at, expires_at)
    VALUES ($1, $2, $3, 'running', now(), now() + interval '1 day')
    ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token, fingerprint = EXCLUDED.fingerprint, state = 'running',
        outcome = NULL, created_at = now(), expires_at = EXCLUDED.expires_at
    WHERE per_call.expires_at <= now()
    RETURNING token";
const SELECT: &str = "SELECT state, fingerprint, outcome FROM per_call WHERE key = $1";
const UPDATE: &str = "UPDATE per_call SET state = 'done', outcome = $3, expires_at = now() + interval '1 day'
    WHERE key = $1 AND token = $2 AND state = 'running'";

/// The pattern that projects write themselves: upsert, then select when no row came back, then update.
struct PerCall {
    pool: Pool,
    /// The caller that upserted knows the token; a number is the cheapest that there is.
    tokens: AtomicI64,
    outcome: Vec<u8>,
}

impl PerCall {
    const COUNT: &str = "SELECT count(*), count(*) FILTER (WHERE state = 'done' AND octet_length(outcome) = $1) FROM per_call";

    async fn load(url: &str, keys: u64) -> Result<Self> {
        let client = connect(url).await?;
        client.batch_execute(TABLE).await?;
        load(&client, LOAD_PER_CALL, keys, Self::key).await?;
        let pool = Pool::open(url, [UPSERT, SELECT, UPDATE]).await?;
        Ok(Self { pool, tokens: AtomicI64::new(1), outcome: Response::new().body })
    }

    fn key(number: u64) -> String {
        format!("{SCOPE}/{OPERATION}/{}", Name::of(number).as_str())
    }
}

impl Contestant for PerCall {
    type Run = (String, i64);

    async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
        let (key, token) = (Self::key(number), self.tokens.fetch_add(1, Ordering::Relaxed));
        let fingerprint = inputs::digest(number);
        let connection = self.pool.take().await?;
        let Connection { client, statements: [upsert, select, _] } = &connection;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&key, &token, &fingerprint.as_slice()];
        let is_new = client.query_opt(upsert, &parameters).await?.is_some();
        let row = if is_new { None } else { client.query_opt(select, &[&key]).await? };
        self.pool.give_back(connection);
        if is_new {
            return Ok(Claimed::Run((key, token)));
        }
        replay(&row.context("the row is gone")?, &fingerprint)
    }

    async fn complete(&self, (key, token): Self::Run) -> Result<()> {
        let connection = self.pool.take().await?;
        let Connection { client, statements: [.., update] } = &connection;
        let updated = client.execute(update, &[&key, &token, &self.outcome]).await?;
        self.pool.give_back(connection);
        ensure!(updated == 1, "{key} was not completed");
        Ok(())
    }
}

fn replay<R>(row: &Row, fingerprint: &[u8]) -> Result<Claimed<R>> {
    let (state, found): (&str, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    ensure!(found == fingerprint, "another request had this key");
    ensure!(state == "done", "another caller runs this key");
    Ok(Claimed::Replay(row.try_get::<_, Vec<u8>>(2)?.len()))
}

/// A fixed number of connections, each with its statements prepared: as lean as a pool can be.
struct Pool {
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    client: Client,
    statements: [Statement; 3],
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Pool {
    async fn open(url: &str, [first, second, third]: [&str; 3]) -> Result<Self> {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connect(url).await?;
            let (first, second) = (client.prepare(first).await?, client.prepare(second).await?);
            let statements = [first, second, client.prepare(third).await?];
            idle.push(Connection { client, statements });
        }
        Ok(Self { permits: Semaphore::new(idle.len()), idle: Mutex::new(idle) })
    }

    async fn take(&self) -> Result<Connection> {
        self.permits.acquire().await?.forget();
        let connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        connection.context("a permit is a connection")
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.permits.add_permits(1);
    }
}

/// The principal is [`SCOPE`].
const LOAD_CRATESTACK: &str =
    "INSERT INTO cratestack_idempotency (principal_fingerprint, key, request_hash, reservation_id,
        response_status, response_headers, response_body, expires_at)
    SELECT 'acme', key, fingerprint, gen_random_uuid(), 201, '', $3, now() + interval '1 day'
    FROM unnest($1::text[], $2::bytea[]) AS loaded (key, fingerprint)";

/// The store of cratestack-sqlx, as it is published, called as its middleware calls it.
struct Cratestack {
    store: SqlxIdempotencyStore,
    /// The same for all keys, a day from when the run started.
    expires_at: SystemTime,
    outcome: Vec<u8>,
}

impl Cratestack {
    const COUNT: &str = "SELECT count(*), count(*) FILTER (WHERE octet_length(response_body) = $1) FROM cratestack_idempotency";

    async fn load(url: &str, keys: u64) -> Result<Self> {
        let options = PgPoolOptions::new().min_connections(CONNECTIONS).max_connections(CONNECTIONS);
        // By default it asks the server before every call whether the connection is good. It is quicker without.
        let pool = options.test_before_acquire(false).connect(url).await?;
        let store = SqlxIdempotencyStore::new(pool);
        store.ensure_schema().await?;
        load(&connect(url).await?, LOAD_CRATESTACK, keys, Self::key).await?;
        Ok(Self { store, expires_at: tomorrow(), outcome: Response::new().body })
    }

    fn key(number: u64) -> String {
        format!("{OPERATION}/{}", Name::of(number).as_str())
    }
}

impl Contestant for Cratestack {
    type Run = (String, Uuid);

    async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
        let (key, fingerprint) = (Self::key(number), inputs::digest(number));
        match self.store.reserve_or_fetch(SCOPE, &key, fingerprint, self.expires_at).await? {
            ReservationOutcome::Reserved { token } => Ok(Claimed::Run((key, token))),
            ReservationOutcome::Replay(found) => Ok(Claimed::Replay(found.response_body.len())),
            other => bail!("key {number}: the answer to a claim was {other:?}"),
        }
    }

    /// It does not return whether anything was completed; the count at the end does.
    async fn complete(&self, (key, token): Self::Run) -> Result<()> {
        Ok(self.store.complete(SCOPE, &key, token, STATUS, &[], &self.outcome).await?)
    }
}

#[expect(clippy::disallowed_methods, reason = "its interface takes the caller's time")]
fn tomorrow() -> SystemTime {
    SystemTime::now() + Duration::from_hours(24)
}

#[cfg(test)]
mod tests {
    use super::super::COUNTED;
    use super::super::tests::work;
    use super::*;
    use crate::contestants::{Engine, refuses_a_second_claim};
    use crate::report::{Metric, Rows};
    use semel::Semel;

    #[test]
    fn no_contestant_on_postgres_runs_a_key_twice_and_each_hands_back_the_outcome() {
        let (server, runtime) = (Postgres::start().unwrap(), runtime(2).unwrap());
        let url = server.url();
        let (semel, per_call, cratestack) = runtime.block_on(async {
            migrate(&url).await.unwrap();
            let semel = Semel::new(PostgresStore::connect(&url).await.unwrap());
            let semel = Engine::over(semel, Response::new().body);
            (semel, PerCall::load(&url, 10).await.unwrap(), Cratestack::load(&url, 10).await.unwrap())
        });
        refuses_a_second_claim(("semel", BODY_BYTES), &runtime, &semel);
        refuses_a_second_claim(("per call", BODY_BYTES), &runtime, &per_call);
        refuses_a_second_claim(("cratestack", BODY_BYTES), &runtime, &cratestack);
    }

    #[test]
    fn a_row_that_nobody_was_told_of_on_postgres_is_noticed() {
        let (server, runtime) = (Postgres::start().unwrap(), runtime(2).unwrap());
        let url = server.url();
        let (store, client, semel, per_call) = runtime.block_on(async {
            migrate(&url).await.unwrap();
            let store = PostgresStore::connect(&url).await.unwrap();
            let semel = load_semel(store.clone(), 2_000).await.unwrap();
            let per_call = PerCall::load(&url, 2_000).await.unwrap();
            (store, connect(&url).await.unwrap(), semel, Entry::new("per call", per_call, 2_000))
        });
        work(&semel, &runtime);
        work(&per_call, &runtime);
        let (mut rows, of_per_call) = (Rows::default(), async || count(&client, PerCall::COUNT).await);
        check(&semel, 2_000, &runtime, &mut rows, async || census_of(&store).await).unwrap();
        check(&per_call, 2_000, &runtime, &mut rows, of_per_call).unwrap();
        assert!(
            rows.of(COUNTED).all(|row| (row.median(Metric::KeysLoaded) - 2_000.0).abs() < 0.5),
            "{rows:?}"
        );
        let keys = 2_000 + per_call.loaded.answers().ran;
        let unfinished = "INSERT INTO per_call VALUES ('one more', 1, '', 'running', NULL, now(), now())";
        runtime.block_on(client.batch_execute(unfinished)).unwrap();
        let found = runtime.block_on(of_per_call()).unwrap();
        assert_eq!(found, Census { records: keys + 1, done: keys, ..Census::default() });
        assert!(check(&per_call, 2_000, &runtime, &mut rows, of_per_call).is_err());
        // A run without a complete, on semel's side.
        let engine = Engine::over(Semel::new(store.clone()), Response::new().body);
        drop(runtime.block_on(engine.claim(9_000_000)).unwrap());
        assert!(check(&semel, 2_000, &runtime, &mut rows, async || census_of(&store).await).is_err());
    }
}
