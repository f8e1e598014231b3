//! Opens a folder and tells every record in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::{Clock, SystemClock, Timestamp};
use semel::record::{PermitId, Record, State};
use semel::store::Scan;
use semel::{Key, Result, Semel};
use semel_file::FileStore;
use semel_file::disk::{Disk, Folder};

use crate::liar::{Liar, Lie};
use crate::say;

/// Small, so that segments fill up, are emptied and dropped all the time; and not always the same.
const SEGMENT_BYTES_LEAST: u64 = 64 << 10;
/// Longer than any test: a record that runs can be taken over by nobody, so a second grant is never a lapse.
const LEASE: Duration = Duration::from_hours(24);
const PAGE: usize = 1_024;

/// A store that is open, and its clock.
pub(crate) struct Opened {
    pub(crate) semel: Semel,
    pub(crate) clock: SharedClock,
}

/// A permit that nobody works under, from this life or one before.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) key: Key,
    pub(crate) permit_id: PermitId,
    pub(crate) retention: Duration,
}

/// One clock for the store and for what is said about it.
#[derive(Clone)]
pub(crate) struct SharedClock(Arc<SystemClock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Opens the folder, if need be on a disk that lies.
pub(crate) fn open(folder: &Path, lie: Option<Lie>, seed: u64) -> Result<Opened> {
    let clock = SharedClock(Arc::new(SystemClock::new()));
    let started_at = clock.now();
    let segment_bytes = SEGMENT_BYTES_LEAST << (seed % 4);
    let held = Folder::hold(folder)?;
    let disk: Arc<dyn Disk> = match lie {
        None => Arc::new(held),
        Some(lie) => Arc::new(Liar::new(held, lie)),
    };
    let store = FileStore::on(disk).clock(clock.clone()).segment_bytes(segment_bytes).open()?;
    say::opened(clock.now().since(started_at).as_millis());
    // Replays must come from the store: one from the engine's memory proves nothing.
    let semel = Semel::builder(store).lease(LEASE).replays_kept(0, 0).build()?;
    Ok(Opened { semel, clock })
}

impl Opened {
    /// Tells every record, and hands back the permits that nobody works under any more.
    pub(crate) async fn tell(&self) -> Result<Vec<Left>> {
        let records = self.records().await?;
        say::all(&records, self.clock.now().as_micros());
        Ok(records.iter().filter_map(left).collect())
    }

    /// Every record, by scan; and each again by its key, because callers come by another way than people do.
    async fn records(&self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut after = None;
        loop {
            let page = self.semel.scan(Scan { after, limit: PAGE, ..Scan::default() }).await?;
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for scanned in &records {
            let loaded = self.semel.get(&scanned.key).await?;
            if loaded.as_ref() != Some(scanned) && scanned.is_live(self.clock.now()) {
                say::wrong(&format_args!("{} is not the same by key as by scan", scanned.key.name()));
            }
        }
        Ok(records)
    }
}

fn left(record: &Record) -> Option<Left> {
    let State::Running(running) = &record.state else { return None };
    Some(Left { key: record.key.clone(), permit_id: running.permit_id, retention: record.retention })
}
