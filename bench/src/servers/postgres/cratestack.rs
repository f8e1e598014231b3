//! The store of cratestack-sqlx, as it is published, called as its middleware calls it.

use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use cratestack_core::{IdempotencyStore, ReservationOutcome};
use cratestack_sqlx::SqlxIdempotencyStore;
use cratestack_sqlx::sqlx::postgres::PgPoolOptions;
use cratestack_sqlx::sqlx::types::Uuid;
use tokio_postgres::Client;

use super::per_call::count;
use super::pool::{CONNECTIONS, connect};
use crate::contestants::{Claimed, Contestant};
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};
use crate::servers::census::Census;
use crate::servers::entry::pieces;

const LOAD: &str =
    "INSERT INTO cratestack_idempotency (principal_fingerprint, key, request_hash, reservation_id,
        response_status, response_headers, response_body, expires_at)
    SELECT $1, key, fingerprint, gen_random_uuid(), 201, '', $4, now() + interval '1 day'
    FROM unnest($2::text[], $3::bytea[]) AS loaded (key, fingerprint)";
const COUNT: &str =
    "SELECT count(*), count(*) FILTER (WHERE octet_length(response_body) = $1) FROM cratestack_idempotency";
const STATUS: u16 = 201;

/// The store, and what it has to be told.
pub(super) struct Cratestack {
    store: SqlxIdempotencyStore,
    /// The same for all keys, a day from when the run started.
    expires_at: SystemTime,
    outcome: Vec<u8>,
}

impl Cratestack {
    /// Makes its table with the keys below `keys` done.
    pub(super) async fn load(url: &str, keys: u64) -> Result<Self> {
        let options = PgPoolOptions::new().min_connections(CONNECTIONS).max_connections(CONNECTIONS);
        // By default it asks the server before every call whether the connection is good. It is quicker without.
        let pool = options.test_before_acquire(false).connect(url).await?;
        let store = SqlxIdempotencyStore::new(pool);
        store.ensure_schema().await?;
        let (client, outcome) = (connect(url).await?, Response::new().body);
        for numbers in pieces(keys) {
            let names: Vec<String> = numbers.clone().map(key).collect();
            let fingerprints: Vec<Vec<u8>> = numbers.map(|number| inputs::digest(number).to_vec()).collect();
            client.execute(LOAD, &[&SCOPE, &names, &fingerprints, &outcome]).await?;
        }
        Ok(Self { store, expires_at: tomorrow(), outcome })
    }

    /// What its table holds.
    pub(super) async fn census(client: &Client) -> Result<Census> {
        count(client, COUNT).await
    }
}

impl Contestant for Cratestack {
    type Run = (String, Uuid);

    async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
        let (key, fingerprint) = (key(number), inputs::digest(number));
        match self.store.reserve_or_fetch(SCOPE, &key, fingerprint, self.expires_at).await? {
            ReservationOutcome::Reserved { token } => Ok(Claimed::Run((key, token))),
            ReservationOutcome::Replay(found) => Ok(Claimed::Replay(found.response_body.len())),
            other => bail!("key {number}: a claim was told {other:?}"),
        }
    }

    /// It does not say whether anything was completed; the count at the end does.
    async fn complete(&self, (key, token): Self::Run) -> Result<()> {
        Ok(self.store.complete(SCOPE, &key, token, STATUS, &[], &self.outcome).await?)
    }
}

fn key(number: u64) -> String {
    format!("{OPERATION}/{}", Name::of(number).as_str())
}

#[expect(clippy::disallowed_methods, reason = "its interface takes the caller's time")]
fn tomorrow() -> SystemTime {
    SystemTime::now() + Duration::from_hours(24)
}
