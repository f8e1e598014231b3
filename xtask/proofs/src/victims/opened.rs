//! A store that is open, in a folder or on a server, and every record in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::{Clock, SystemClock, Timestamp};
use semel::record::{PermitId, Record, State};
use semel::store::{Scan, Store};
use semel::{ErrorKind, Key, Result, Semel};
use semel_file::FileStore;
use semel_file::disk::{Disk, Folder};
use semel_ops::store_url::Address;

use super::liar::{Liar, Lie};
use super::say;

/// Small, so that segments fill up, are emptied and dropped all the time; and not always the same.
const SEGMENT_BYTES_LEAST: u64 = 64 << 10;
/// Longer than any run of this: a record that runs can be taken over by nobody, so a second grant is never a lapse.
const LEASE: Duration = Duration::from_hours(24);
const PAGE: usize = 1_024;
/// How often records past their retention are removed: often, so that a crash hits it in the middle.
const SWEEP_FOLDER_EVERY: Duration = Duration::from_millis(20);
const SWEEP_SERVER_EVERY: Duration = Duration::from_millis(100);
/// How long to wait before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(5);

/// Where the store is, and so what its failures mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In a folder of this process: it never fails.
    Folder,
    /// On a server, which goes away and comes back.
    Server,
}

impl Location {
    const fn sweep_every(self) -> Duration {
        match self {
            Self::Folder => SWEEP_FOLDER_EVERY,
            Self::Server => SWEEP_SERVER_EVERY,
        }
    }
}

/// A store that is open, and its clock.
pub(super) struct Opened {
    pub(super) semel: Semel,
    pub(super) location: Location,
    store: Arc<dyn Store>,
    clock: SharedClock,
}

/// A permit that nobody works under, from this life or one before.
#[derive(Clone)]
pub(super) struct Left {
    pub(super) key: Key,
    pub(super) permit_id: PermitId,
    pub(super) retention: Duration,
}

/// One clock for the store and for what is said about it, ahead of the machine's by so much. A server's is this machine's.
#[derive(Clone)]
struct SharedClock {
    machine: Arc<SystemClock>,
    ahead: Duration,
}

impl SharedClock {
    fn ahead_by(ahead: Duration) -> Self {
        Self { machine: Arc::new(SystemClock::new()), ahead }
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.machine.now().plus(self.ahead)
    }
}

impl Opened {
    /// Opens a folder, if need be on a disk that lies, with a clock that is so far ahead of the machine's.
    pub(super) fn folder(folder: &Path, lie: Option<Lie>, seed: u64, clock_ahead_ms: u64) -> Result<Self> {
        let clock = SharedClock::ahead_by(Duration::from_millis(clock_ahead_ms));
        let started_at = clock.now();
        let held = Folder::hold(folder)?;
        let disk: Arc<dyn Disk> = match lie {
            None => Arc::new(held),
            Some(lie) => Arc::new(Liar::new(held, lie)),
        };
        let segment_bytes = SEGMENT_BYTES_LEAST << (seed % 4);
        let store = FileStore::on(disk).clock(clock.clone()).segment_bytes(segment_bytes).open()?;
        say::opened(clock.now().since(started_at).as_millis());
        Self::new(Arc::new(store), clock, Location::Folder)
    }

    /// Opens the store at a URL; one that needs a schema gets it.
    pub(super) async fn server(url: &str) -> Result<Self> {
        let address: Address = url.parse()?;
        address.migrate().await?;
        let store = address.open().await?.store();
        Self::new(store, SharedClock::ahead_by(Duration::ZERO), Location::Server)
    }

    fn new(store: Arc<dyn Store>, clock: SharedClock, location: Location) -> Result<Self> {
        // Replays must come from the store: one from the engine's memory proves nothing.
        let engine = Semel::builder_shared(Arc::clone(&store)).lease(LEASE).replays_kept(0, 0);
        let semel = engine.sweep_every(location.sweep_every()).build()?;
        Ok(Self { semel, location, store, clock })
    }

    pub(super) fn now_micros(&self) -> u64 {
        self.clock.now().as_micros()
    }

    /// Tells every record, as soon as a server answers, and hands back the permits that nobody works under any more.
    pub(super) async fn tell(&self) -> Result<Vec<Left>> {
        let asked_at = self.clock.now();
        let records = loop {
            match self.records().await {
                Ok(records) => break records,
                Err(error) if self.location == Location::Server && is_outage(&error) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        };
        if self.location == Location::Server {
            say::opened(self.clock.now().since(asked_at).as_millis());
        }
        say::all(&records, self.now_micros());
        Ok(records.iter().filter_map(|record| left(record)).collect())
    }

    /// Every record, by scan; and each again by its key, because callers come by another way than people do.
    async fn records(&self) -> Result<Vec<Arc<Record>>> {
        let mut records = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.scan(Scan { after, limit: PAGE, ..Scan::default() }).await?.value;
            if let Some((_, error)) = page.damaged.into_iter().next() {
                return Err(error);
            }
            self.compare(&page.records).await?;
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                return Ok(records);
            }
        }
    }

    async fn compare(&self, scanned: &[Arc<Record>]) -> Result<()> {
        let loaded = self.store.load(scanned.iter().map(|record| record.key.id()).collect()).await?.value;
        for (scanned, loaded) in scanned.iter().zip(loaded) {
            let loaded = loaded?;
            let is_same = match self.location {
                Location::Folder => loaded.as_ref() == Some(scanned),
                // Counts of duplicates are written late, and may be so in between.
                Location::Server => loaded.is_some_and(|loaded| loaded.state == scanned.state),
            };
            if !is_same && scanned.is_live(self.clock.now()) {
                say::wrong(&format_args!("{} is not the same by key as by scan", scanned.key.name()));
            }
        }
        Ok(())
    }
}

/// Whether the server was away, which says nothing about the store.
fn is_outage(error: &semel::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown)
}

fn left(record: &Record) -> Option<Left> {
    let State::Running(running) = &record.state else { return None };
    Some(Left { key: record.key.clone(), permit_id: running.grant.permit_id, retention: record.retention })
}
