//! Opens a store by its address and tells every record in it.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::{Clock, SystemClock};
use semel::record::{PermitId, Record, State};
use semel::store::{Scan, Store};
use semel::{ErrorKind, Key, Result, Semel};
use semel_ops::store_url::Address;

use crate::say;

/// Longer than any run of this: a record that runs can be taken over by nobody, so a second grant is never a lapse.
const LEASE: Duration = Duration::from_hours(24);
const PAGE: usize = 1_024;
/// How long to wait before a server that does not answer is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// A store that is open, and a clock that is the server's too: both are on this machine.
pub(crate) struct Opened {
    pub(crate) semel: Semel,
    store: Arc<dyn Store>,
    clock: SystemClock,
}

/// A permit that nobody works under, from this life or one before.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) key: Key,
    pub(crate) permit_id: PermitId,
    pub(crate) retention: Duration,
}

/// Opens the store; one that needs a schema gets it.
pub(crate) async fn open(url: &str) -> Result<Opened> {
    let address: Address = url.parse()?;
    address.migrate().await?;
    let store = address.open().await?.store();
    // Replays must come from the store: one from the engine's memory proves nothing.
    let semel = Semel::builder_shared(Arc::clone(&store)).lease(LEASE).replays_kept(0, 0).build()?;
    Ok(Opened { semel, store, clock: SystemClock::new() })
}

impl Opened {
    pub(crate) fn now_micros(&self) -> u64 {
        self.clock.now().as_micros()
    }

    /// Tells every record as soon as the server answers, and hands back the permits that nobody works under any more.
    pub(crate) async fn tell(&self) -> Result<Vec<Left>> {
        let asked_at = self.clock.now();
        let records = loop {
            match self.records().await {
                Ok(records) => break records,
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        };
        say::opened(self.clock.now().since(asked_at).as_millis());
        say::all(&records, self.now_micros());
        Ok(records.iter().filter_map(left).collect())
    }

    /// Every record, by scan; and each again by its key, because callers come by another way than people do.
    async fn records(&self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.scan(Scan { after, limit: PAGE, ..Scan::default() }).await?.value;
            self.compare(&page.records).await?;
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                return Ok(records);
            }
        }
    }

    async fn compare(&self, scanned: &[Record]) -> Result<()> {
        let loaded = self.store.load(scanned.iter().map(|record| record.key.id()).collect()).await?.value;
        for (scanned, loaded) in scanned.iter().zip(loaded) {
            // Counts of duplicates are written late, and may be so in between.
            let is_same = loaded.is_some_and(|loaded| loaded.state == scanned.state);
            if !is_same && scanned.is_live(self.clock.now()) {
                say::wrong(&format_args!("{} is not the same by key as by scan", scanned.key.name()));
            }
        }
        Ok(())
    }
}

fn left(record: &Record) -> Option<Left> {
    let State::Running(running) = &record.state else { return None };
    Some(Left { key: record.key.clone(), permit_id: running.permit_id, retention: record.retention })
}
