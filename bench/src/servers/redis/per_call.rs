//! The pattern that projects write themselves, call by call, on one multiplexed connection.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

use crate::contestants::{Claimed, Contestant};
use crate::inputs::{self, BODY_BYTES, Name, OPERATION, Response, SCOPE};
use crate::servers::census::Census;
use crate::servers::entry::pieces;

const PREFIX: &str = "per-call";
const RUNNING: u8 = b'r';
const DONE: u8 = b'd';
const FINGERPRINT_BYTES: usize = 32;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The pattern. A value is a letter for the state, the fingerprint, and the outcome if there is one.
pub(super) struct PerCall {
    connection: MultiplexedConnection,
    outcome: Vec<u8>,
}

/// A run that was granted: whose complete needs no more than the value to write.
pub(super) struct Run {
    key: String,
    fingerprint: [u8; FINGERPRINT_BYTES],
}

impl PerCall {
    /// Writes the keys below `keys` as done.
    pub(super) async fn load(url: &str, keys: u64) -> Result<Self> {
        // Patient, as semel is: a busy server is slow, and the driver gives up after half a second.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
        let connection = Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?;
        let pattern = Self { connection, outcome: Response::new().body };
        for numbers in pieces(keys) {
            let mut pipeline = redis::pipe();
            for number in numbers {
                let value = pattern.done(&inputs::digest(number));
                pipeline.cmd("SET").arg(key(number)).arg(value).arg("PX").arg(DAY_MS).ignore();
            }
            pipeline.query_async::<()>(&mut pattern.connection.clone()).await?;
        }
        Ok(pattern)
    }

    fn done(&self, fingerprint: &[u8]) -> Vec<u8> {
        [&[DONE], fingerprint, &self.outcome].concat()
    }
}

/// What a server holds of this pattern's.
pub(super) async fn census(url: &str) -> Result<Census> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
    let mut connection = Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?;
    // The server may name a key twice while its table grows.
    let (mut names, mut done, mut cursor) = (HashSet::<String>::new(), 0, 0_u64);
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{PREFIX}:*")).arg("COUNT").arg(1_000);
        let (next, found): (u64, Vec<String>) = scan.query_async(&mut connection).await?;
        let mut pipeline = redis::pipe();
        for name in found {
            if names.insert(name.clone()) {
                pipeline.cmd("STRLEN").arg(name);
            }
        }
        if !pipeline.is_empty() {
            let lengths: Vec<usize> = pipeline.query_async(&mut connection).await?;
            let is_done = |length: &&usize| **length == 1 + FINGERPRINT_BYTES + BODY_BYTES;
            done += lengths.iter().filter(is_done).count() as u64;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(Census { records: names.len() as u64, done, ..Census::default() });
        }
    }
}

impl Contestant for PerCall {
    type Run = Run;

    async fn claim(&self, number: u64) -> Result<Claimed<Run>> {
        let (key, fingerprint) = (key(number), inputs::digest(number));
        let mut connection = self.connection.clone();
        let value = [&[RUNNING], fingerprint.as_slice()].concat();
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(value).arg("NX").arg("PX").arg(DAY_MS);
        if set.query_async::<Option<String>>(&mut connection).await?.is_some() {
            return Ok(Claimed::Run(Run { key, fingerprint }));
        }
        let found: Option<Vec<u8>> = redis::cmd("GET").arg(&key).query_async(&mut connection).await?;
        let found = found.context("the key is gone")?;
        let Some((&state, (theirs, outcome))) = found
            .split_first()
            .and_then(|(state, rest)| Some((state, rest.split_at_checked(FINGERPRINT_BYTES)?)))
        else {
            bail!("key {number} holds something else");
        };
        ensure!(theirs == fingerprint, "another request had key {number}");
        ensure!(state == DONE, "somebody else runs key {number}");
        Ok(Claimed::Replay(outcome.len()))
    }

    async fn complete(&self, Run { key, fingerprint }: Run) -> Result<()> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(self.done(&fingerprint)).arg("PX").arg(DAY_MS);
        Ok(set.query_async(&mut self.connection.clone()).await?)
    }
}

fn key(number: u64) -> String {
    format!("{PREFIX}:{SCOPE}:{OPERATION}:{}", Name::of(number).as_str())
}
