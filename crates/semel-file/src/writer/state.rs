//! What a writer starts from, and goes on with.

use std::sync::Arc;

use super::usage::Usage;
use crate::format::identity::StoreId;
use crate::log::segment::Segment;

/// No segment is made smaller than this, unless all have to be.
pub(crate) const SEGMENT_BYTES_MIN: u32 = 4 << 20;

/// What a writer starts from.
pub(crate) struct LogState {
    pub(crate) store: StoreId,
    pub(crate) segment_bytes_max: u32,
    /// The segment that is written, and where its frames end; zero if it has no header yet.
    pub(crate) active: Arc<Segment>,
    pub(crate) tail: u32,
    pub(crate) capacity: u32,
    /// Where the frames of the segment before it end.
    pub(crate) previous_end: u32,
    pub(crate) next_version: u64,
    pub(crate) usage: Usage,
}

impl LogState {
    /// How large the next segment is to be. An eighth of the log: few files for a large store, little room for a small one.
    pub(crate) fn next_segment_bytes(&self) -> u32 {
        let most = self.segment_bytes_max;
        let eighth = u32::try_from(self.usage.total_bytes() / 8).unwrap_or(u32::MAX);
        eighth.clamp(SEGMENT_BYTES_MIN.min(most), most)
    }
}
