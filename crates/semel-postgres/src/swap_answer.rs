//! What the server answered to one swap.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Record, Version};
use semel::store::{Loaded, Swap, SwapReply};
use semel::{RecordId, Result};
use tokio_postgres::Row;

use crate::error::corrupt;
use crate::row;
use crate::store::get;
use crate::value::{Moment, Raw};

/// The answer to one swap, or to one look.
pub(crate) struct SwapAnswer {
    pub(crate) id: RecordId,
    pub(crate) now: Timestamp,
    pub(crate) result: SwapResult,
    /// The transaction that wrote the record that was found, if that is done.
    pub(crate) done_by: Option<u32>,
}

pub(crate) enum SwapResult {
    /// The record is stored as this version.
    Won(Version),
    /// Nothing changed: this is what was found instead.
    Lost(Loaded),
}

impl SwapAnswer {
    pub(crate) fn read(row: &Row) -> Result<Self> {
        let version = get::<Option<i64>>(row, 1)?.map(i64::unsigned_abs);
        let shown = get::<Option<Raw<'_>>>(row, 3)?.map(|raw| raw.0);
        Self::new(get::<Raw<'_>>(row, 0)?.0, version, get::<Moment>(row, 2)?.0, shown)
    }

    /// The same from the columns of a swap's answer.
    pub(crate) fn new(id: &[u8], version: Option<u64>, now: Timestamp, shown: Option<&[u8]>) -> Result<Self> {
        let id =
            id.try_into().map(RecordId::from_bytes).map_err(|_| corrupt("its id is not 32 bytes long"))?;
        let Some(version) = version else {
            let found = loaded(&id, shown);
            let (now, done_by) = (no_earlier(now, [&found]), row::done_by(&found, shown));
            return Ok(Self { id, now, result: SwapResult::Lost(found), done_by });
        };
        Ok(Self { id, now, result: SwapResult::Won(Version::new(version)), done_by: None })
    }

    pub(crate) fn reply(self, swap: Swap) -> SwapReply {
        match self.result {
            SwapResult::Won(version) => SwapReply::Swapped(swap.next.stamp(version, self.now)),
            SwapResult::Lost(Ok(current)) => SwapReply::Stale(current),
            SwapResult::Lost(Err(why)) => SwapReply::Damaged(why),
        }
    }
}

/// What a row says, if there is one.
pub(crate) fn loaded(id: &RecordId, shown: Option<&[u8]>) -> Loaded {
    Ok(shown.map(|row| row::record(id, row)).transpose()?.map(Arc::new))
}

/// A moment that is not before anything that was found: another caller may have written after the statement came and
/// before it looked.
pub(crate) fn no_earlier<'a>(now: Timestamp, found: impl IntoIterator<Item = &'a Loaded>) -> Timestamp {
    let records = found.into_iter().filter_map(|found| found.as_ref().ok()?.as_ref());
    records.map(|record: &Arc<Record>| record.changed_at).fold(now, Timestamp::max)
}
