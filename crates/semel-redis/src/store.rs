//! The four methods over Redis.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use semel::clock::Timestamp;
use semel::store::{Answer, Caching, Finding, Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{RecordId, Result};

use crate::check::Inspection;
use crate::config::{Config, RedisStoreBuilder};
use crate::connect::{Command, Purpose, Servers};
use crate::durability::Durability;
use crate::known_settings::{self, KnownSettings};
use crate::names::{Names, Tag};
use crate::{load, scan, swap, sweep};

/// How long the key of a readiness check stays.
const READY_MILLIS: u64 = 10_000;

/// A store on Redis, for any number of processes. Cheap to clone; clones share their connections.
///
/// Connections are opened when they are needed, and again after they broke.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) servers: Servers,
    pub(crate) names: Names,
    /// The tag that the next sweep starts with, so that none is passed over for ever.
    pub(crate) sweep_next: AtomicU16,
    pub(crate) settings: KnownSettings,
    wanted: Option<Durability>,
    durability: Durability,
}

impl RedisStore {
    /// Connects to the servers that a URL names, and refuses ones that cannot keep what the store promises.
    ///
    /// `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss` for TLS; `redis+cluster://H:P,H:P`;
    /// `redis+sentinel://H:P,H:P/MASTER`. Behind a `?`: `prefix`, `connections`, `reply_within_ms`, `connect_within_ms`,
    /// `durability`, `ca`, `cert`, `key`, `db`, `sentinel_user`, `sentinel_password`.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// A store at a URL, with settings of your own.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    pub(crate) async fn open(config: Config) -> Result<Self> {
        let (names, wanted) = (Names::new(&config.prefix), config.wanted);
        let servers = Servers::connect(config).await?;
        let found = Inspection::make(&servers, &names).await?;
        found.refuse(wanted)?;
        let durability = found.durability();
        if durability == Durability::Unreadable {
            tracing::warn!(
                "semel: Redis does not show its persistence settings, so what survives a crash is unknown"
            );
        } else {
            tracing::info!(%durability, "semel: connected to Redis");
        }
        let settings = KnownSettings::new(wanted, &found);
        let sweep_next = AtomicU16::new(Tag::FIRST.index());
        Ok(Self { inner: Arc::new(Inner { servers, names, sweep_next, settings, wanted, durability }) })
    }

    /// What survives a crash, by the settings that were found at connect; the worst of all masters.
    pub fn durability(&self) -> Durability {
        self.inner.durability
    }

    /// Every setting that the promise needs, as it is now, on every master.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let found = known_settings::check(&self.inner).await?;
        Ok(found.findings(self.inner.wanted.unwrap_or(Durability::Always)))
    }

    /// The settings that broke the promise at the last check: it was made at connect, and is made again every 20 seconds while
    /// the store is used and whenever there is another master. The promise is the durability that was asked for, or else the
    /// one that was found at connect.
    pub fn broken_settings(&self) -> Arc<[Finding]> {
        self.inner.settings.broken()
    }

    /// Writes a small key to every master, as a claim would: an error if one cannot be reached or takes no writes.
    pub async fn ready(&self) -> Result<()> {
        let (map, names) = (self.inner.servers.map(), &self.inner.names);
        let mut commands: Vec<Command> = Vec::new();
        for owner in 0..map.masters().len() {
            let Some(tag) = Tag::FIRST.onwards().find(|tag| map.owner(*tag) == owner) else { continue };
            let mut cmd = redis::cmd("SET");
            cmd.arg(names.ready(tag)).arg("").arg("PX").arg(READY_MILLIS);
            commands.push(Command { tag, cmd });
        }
        self.inner.servers.send(&commands, Purpose::Write).await?;
        Ok(())
    }

    /// What acknowledgements survive, in words, by what the last check found.
    pub fn survives(&self) -> String {
        self.inner.settings.survives()
    }
}

impl Store for RedisStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        known_settings::check_if_due(&self.inner);
        Reply::later(swap::swap(Arc::clone(&self.inner), batch))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        Reply::later(load::load(Arc::clone(&self.inner), ids))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        known_settings::check_if_due(&self.inner);
        Reply::later(sweep::sweep(Arc::clone(&self.inner), limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        Reply::later(scan::scan(Arc::clone(&self.inner), scan))
    }
}

/// An answer whose done records engines may keep: asking again costs a round trip, and the server's clock goes as fast as
/// any other.
pub(crate) fn cacheable<T>(now: Timestamp, value: T) -> Answer<T> {
    Answer::new(now, value).caching(Caching::Allowed)
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({:?}, {})", self.inner.servers.map().masters(), self.inner.durability)
    }
}
