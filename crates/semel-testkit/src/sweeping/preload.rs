//! The records that sweepers and claimers find: many past their keep, some that are not.

use std::sync::Arc;
use std::time::Duration;

use semel::record::Keep;
use semel::store::{Store, Swap, SwapReply};
use semel::{Error, ErrorKind, Outcome, RecordId, Result};
use tokio::task::JoinSet;

use crate::sample;

/// How many records are put there in one round trip.
pub(super) const BATCH: usize = 1_024;
/// How many round trips are on their way at the same time.
const IN_FLIGHT_MAX: usize = 4;

/// The ids of so many new records, done and kept for `keep`.
pub(super) async fn preload(store: &Arc<dyn Store>, records: usize, keep: Duration) -> Result<Vec<RecordId>> {
    let mut ids = Vec::with_capacity(records);
    let mut on_their_way = JoinSet::new();
    while ids.len() < records || !on_their_way.is_empty() {
        if ids.len() < records && on_their_way.len() < IN_FLIGHT_MAX {
            let batch = batch(BATCH.min(records - ids.len()), keep)?;
            ids.extend(batch.iter().map(Swap::id));
            on_their_way.spawn(put(Arc::clone(store), batch));
        } else if let Some(put) = on_their_way.join_next().await {
            put.map_err(|error| Error::new(ErrorKind::Unknown, error.to_string()))??;
        }
    }
    Ok(ids)
}

fn batch(records: usize, keep: Duration) -> Result<Vec<Swap>> {
    let outcome = Outcome::success(*b"done long ago");
    let swap = |_| {
        let ask = semel::machine::claim::Ask { retention: keep, ..sample::ask(&sample::key("sweeping")?) };
        let next = sample::done(&ask, &outcome)?.next;
        Ok(Swap { expected: None, next, keep: Keep::For(keep) })
    };
    (0..records).map(swap).collect()
}

async fn put(store: Arc<dyn Store>, batch: Vec<Swap>) -> Result<()> {
    let replies = store.swap(batch).await?.value;
    match replies.iter().find(|reply| !matches!(reply, SwapReply::Swapped(_))) {
        None => Ok(()),
        Some(other) => Err(Error::new(ErrorKind::Invalid, format!("a new record was not taken: {other:?}"))),
    }
}

/// How many of these records are there.
pub(super) async fn present(store: &Arc<dyn Store>, ids: &[RecordId]) -> Result<usize> {
    let mut present = 0;
    for ids in ids.chunks(BATCH) {
        present += store.load(ids.to_vec()).await?.value.iter().flatten().count();
    }
    Ok(present)
}
