//! semel on Redis, beside the three commands that projects write themselves, call by call.

use anyhow::{Context, Result, bail, ensure};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use semel_redis::RedisStore;
use test_services::{AppendFsync, Redis};

use super::{Census, SEMEL, batches, census_of, check, describe, load_semel, measure};
use crate::args::ServerArgs;
use crate::callers::{CYCLES, Entry, THREADS, at_least_best_peer, runtime};
use crate::contestants::{Claimed, Contestant};
use crate::folder::filesystem;
use crate::inputs::{self, BODY_BYTES, Name, OPERATION, Response, SCOPE};
use crate::report::{Case, Page};

const PER_CALL: &str = "SET NX, GET, SET";
const EVERYSEC: &str = "everysec";
const ALWAYS: &str = "always";

pub(crate) fn run(args: &ServerArgs) -> Result<()> {
    let runtime = runtime(THREADS)?;
    let mut page = Page::new(
        "redis",
        concat!(include_str!("../pages/redis.md"), include_str!("../pages/servers.md")),
        args,
    )?;
    let (mut servers, mut entries) = (Vec::new(), Vec::new());
    for (setting, fsync) in [(EVERYSEC, AppendFsync::EverySecond), (ALWAYS, AppendFsync::Always)] {
        let server = Redis::start(fsync)?;
        let (store, loaded) = runtime.block_on(load(&server.url(), args.keys))?;
        entries.extend(loaded.map(|entry| Entry { setting, ..entry }));
        servers.push((server, store));
    }
    let (server, _) = servers.first().context("there are two servers")?;
    let filesystem = filesystem(&server.folder().canonicalize()?, "set TMPDIR to a folder on a disk")?;
    eprintln!("the servers are beside {}, {filesystem}", server.folder().display());
    page.fact("filesystem", filesystem);
    page.fact("Redis", version(server)?);
    measure(&entries, args, &runtime, &mut page)?;
    for ((server, store), pair) in servers.iter().zip(entries.chunks_exact(2)) {
        let ([semel, per_call], url) = (pair, server.url()) else { continue };
        check(semel, args.keys, &runtime, &mut page.rows, async || census_of(store).await)?;
        check(per_call, args.keys, &runtime, &mut page.rows, async || census(&url).await)?;
    }
    page.bars = [(EVERYSEC, 256, 1.2), (ALWAYS, 256, 1.2), (EVERYSEC, 1, 0.85), (ALWAYS, 1, 0.85)]
        .map(|(setting, callers, wanted)| {
            let semel = Case::new(CYCLES, SEMEL).setting(setting).load(callers);
            at_least_best_peer(&page.rows, semel, wanted)
        })
        .into();
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

async fn load(url: &str, keys: u64) -> Result<(RedisStore, [Entry; 2])> {
    let store = RedisStore::connect(url).await?;
    let semel = load_semel(store.clone(), keys).await?;
    Ok((store, [semel, Entry::new(PER_CALL, PerCall::load(url, keys).await?, keys)]))
}

pub(crate) fn version(server: &Redis) -> Result<String> {
    let info = server.ask(&["INFO", "server"])?.concat();
    let line = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(line.context("the server has no version")?.trim().to_owned())
}

const PREFIX: &str = "per-call";
const RUNNING: u8 = b'r';
const DONE: u8 = b'd';
const FINGERPRINT_BYTES: usize = 32;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The pattern. A value is a letter for the state, the fingerprint, and the outcome if there is one.
struct PerCall {
    connection: MultiplexedConnection,
    outcome: Vec<u8>,
}

impl PerCall {
    async fn load(url: &str, keys: u64) -> Result<Self> {
        let pattern = Self { connection: connect(url).await?, outcome: Response::new().body };
        for numbers in batches(keys) {
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

async fn connect(url: &str) -> Result<MultiplexedConnection> {
    // As patient as semel: a busy server is slow, and by default the driver gives up after half a second.
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(std::time::Duration::from_secs(30)));
    Ok(Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// What a server holds of this pattern's: all keys, and those whose value has the length of a done one.
async fn census(url: &str) -> Result<Census> {
    const COUNT: &str = "local keys, done = redis.call('KEYS', ARGV[1]), 0
        for _, key in ipairs(keys) do if redis.call('STRLEN', key) == tonumber(ARGV[2]) then done = done + 1 end end
        return {#keys, done}";
    let mut count = redis::cmd("EVAL");
    count.arg(COUNT).arg(0).arg(format!("{PREFIX}:*")).arg(1 + FINGERPRINT_BYTES + BODY_BYTES);
    let (records, done) = count.query_async(&mut connect(url).await?).await?;
    Ok(Census { records, done, ..Census::default() })
}

impl Contestant for PerCall {
    /// The key and the fingerprint: a complete needs no more to write its value.
    type Run = (String, [u8; FINGERPRINT_BYTES]);

    async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
        let (key, fingerprint) = (key(number), inputs::digest(number));
        let mut connection = self.connection.clone();
        let value = [&[RUNNING], fingerprint.as_slice()].concat();
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(value).arg("NX").arg("PX").arg(DAY_MS);
        if set.query_async::<Option<String>>(&mut connection).await?.is_some() {
            return Ok(Claimed::Run((key, fingerprint)));
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
        ensure!(state == DONE, "another caller runs key {number}");
        Ok(Claimed::Replay(outcome.len()))
    }

    async fn complete(&self, (key, fingerprint): Self::Run) -> Result<()> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(self.done(&fingerprint)).arg("PX").arg(DAY_MS);
        Ok(set.query_async(&mut self.connection.clone()).await?)
    }
}

fn key(number: u64) -> String {
    format!("{PREFIX}:{SCOPE}:{OPERATION}:{}", Name::of(number).as_str())
}

#[cfg(test)]
mod tests {

    use super::super::tests::work;
    use super::*;
    use crate::contestants::{Engine, refuses_a_second_claim};

    #[test]
    fn no_contestant_on_redis_runs_a_key_twice_and_each_hands_back_the_outcome() {
        let (server, runtime) = (Redis::start(AppendFsync::Always).unwrap(), runtime(2).unwrap());
        let url = server.url();
        let (semel, per_call) = runtime.block_on(async {
            let semel = semel::Semel::new(RedisStore::connect(&url).await.unwrap());
            (Engine::over(semel, Response::new().body), PerCall::load(&url, 10).await.unwrap())
        });
        refuses_a_second_claim(("semel", BODY_BYTES), &runtime, &semel);
        refuses_a_second_claim(("per call", BODY_BYTES), &runtime, &per_call);
    }

    #[test]
    fn a_key_that_nobody_was_told_of_on_redis_is_noticed() {
        let (server, runtime) = (Redis::start(AppendFsync::EverySecond).unwrap(), runtime(2).unwrap());
        let url = server.url();
        let (store, semel, per_call) = runtime.block_on(async {
            let store = RedisStore::connect(&url).await.unwrap();
            let semel = load_semel(store.clone(), 2_000).await.unwrap();
            (store, semel, Entry::new("per call", PerCall::load(&url, 2_000).await.unwrap(), 2_000))
        });
        work(&semel, &runtime);
        work(&per_call, &runtime);
        let mut rows = crate::report::Rows::default();
        check(&semel, 2_000, &runtime, &mut rows, async || census_of(&store).await).unwrap();
        check(&per_call, 2_000, &runtime, &mut rows, async || census(&url).await).unwrap();
        server.ask(&["SET", "per-call:one more", "r"]).unwrap();
        assert!(check(&per_call, 2_000, &runtime, &mut rows, async || census(&url).await).is_err());
    }
}
