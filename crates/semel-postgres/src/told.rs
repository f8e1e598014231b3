//! What the server said to one swap.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Record, Version};
use semel::store::{Swap, SwapReply};
use semel::{RecordId, Result};
use tokio_postgres::Row;

use crate::error::corrupt;
use crate::row;
use crate::store::get;
use crate::value::{Moment, Raw};

/// An answer to one swap.
pub(crate) struct Told {
    pub(crate) id: RecordId,
    pub(crate) now: Timestamp,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// The record is stored as this version.
    Won(Version),
    /// Nothing changed: this is what was found instead.
    Lost(Option<Arc<Record>>),
}

impl Told {
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
            let found = shown.map(row::record).transpose()?.map(Arc::new);
            // Somebody may have written after this statement came and before it looked.
            let now = found.as_ref().map_or(now, |record| now.max(record.changed_at));
            return Ok(Self { id, now, what: What::Lost(found) });
        };
        Ok(Self { id, now, what: What::Won(Version::new(version)) })
    }

    pub(crate) fn reply(self, swap: Swap) -> SwapReply {
        match self.what {
            What::Won(version) => SwapReply::Swapped(swap.next.stamp(version, self.now)),
            What::Lost(current) => SwapReply::Stale(current),
        }
    }
}
