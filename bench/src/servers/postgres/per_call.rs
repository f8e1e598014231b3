//! The pattern that projects write themselves, call by call: upsert, then select when no row came back, then update.

use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, Result, bail, ensure};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::pool::{Pool, connect};
use crate::contestants::{Claimed, Contestant};
use crate::inputs::{self, BODY_BYTES, Name, OPERATION, Response, SCOPE};
use crate::servers::census::Census;
use crate::servers::entry::pieces;

/// No index but that of the key: whoever wants to remove old rows pays more.
const TABLE: &str = "CREATE TABLE per_call (
    key text PRIMARY KEY, token bigint NOT NULL, fingerprint bytea NOT NULL, state text NOT NULL, outcome bytea,
    created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL)";
const LOAD: &str = "INSERT INTO per_call
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
const COUNT: &str =
    "SELECT count(*), count(*) FILTER (WHERE state = 'done' AND octet_length(outcome) = $1) FROM per_call";

/// The pattern, over its pool.
pub(super) struct PerCall {
    pool: Pool,
    /// Whoever upserted knows the token; a number is the cheapest that there is.
    tokens: AtomicI64,
    outcome: Vec<u8>,
}

impl PerCall {
    /// Makes the table with the keys below `keys` done.
    pub(super) async fn load(url: &str, keys: u64) -> Result<Self> {
        let client = connect(url).await?;
        client.batch_execute(TABLE).await?;
        let outcome = Response::new().body;
        for numbers in pieces(keys) {
            let names: Vec<String> = numbers.clone().map(key).collect();
            let fingerprints: Vec<Vec<u8>> = numbers.map(|number| inputs::digest(number).to_vec()).collect();
            client.execute(LOAD, &[&names, &fingerprints, &outcome]).await?;
        }
        let pool = Pool::open(url, &[UPSERT, SELECT, UPDATE]).await?;
        Ok(Self { pool, tokens: AtomicI64::new(1), outcome })
    }

    /// What the table holds.
    pub(super) async fn census(client: &Client) -> Result<Census> {
        count(client, COUNT).await
    }
}

/// All rows and those that are done, by a statement that is told how long an outcome is.
pub(super) async fn count(client: &Client, statement: &str) -> Result<Census> {
    let row = client.query_one(statement, &[&i32::try_from(BODY_BYTES)?]).await?;
    let number = |column| anyhow::Ok(u64::try_from(row.try_get::<_, i64>(column)?)?);
    Ok(Census { records: number(0)?, done: number(1)?, ..Census::default() })
}

impl Contestant for PerCall {
    type Run = (String, i64);

    async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
        let (key, token) = (key(number), self.tokens.fetch_add(1, Ordering::Relaxed));
        let fingerprint = inputs::digest(number);
        let lent = self.pool.take().await?;
        let connection = lent.connection()?;
        let [upsert, select, _] = connection.statements.as_slice() else {
            bail!("there are three statements")
        };
        let parameters: [&(dyn ToSql + Sync); 3] = [&key, &token, &fingerprint.as_slice()];
        if connection.client.query_opt(upsert, &parameters).await?.is_some() {
            return Ok(Claimed::Run((key, token)));
        }
        let row = connection.client.query_opt(select, &[&key]).await?;
        replay(&row.context("the row is gone")?, &fingerprint)
    }

    async fn complete(&self, (key, token): Self::Run) -> Result<()> {
        let lent = self.pool.take().await?;
        let connection = lent.connection()?;
        let [_, _, update] = connection.statements.as_slice() else { bail!("there are three statements") };
        let updated = connection.client.execute(update, &[&key, &token, &self.outcome]).await?;
        ensure!(updated == 1, "{key} was not completed");
        Ok(())
    }
}

fn replay<R>(row: &Row, fingerprint: &[u8]) -> Result<Claimed<R>> {
    let (state, found): (&str, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    ensure!(found == fingerprint, "another request had this key");
    ensure!(state == "done", "somebody else runs this key");
    Ok(Claimed::Replay(row.try_get::<_, Vec<u8>>(2)?.len()))
}

fn key(number: u64) -> String {
    format!("{SCOPE}/{OPERATION}/{}", Name::of(number).as_str())
}
