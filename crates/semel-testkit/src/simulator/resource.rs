//! What the work writes to: something that takes a write only under a fence no lower than it has seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use semel::RecordId;

use super::flaw::Flaw;

/// What the work writes to.
#[derive(Clone)]
pub(super) struct Resource {
    flaw: Flaw,
    writes: Arc<Mutex<Writes>>,
}

#[derive(Default)]
struct Writes {
    accepted: BTreeMap<RecordId, Vec<u64>>,
    refused: u64,
}

impl Resource {
    pub(super) fn new(flaw: Flaw) -> Self {
        Self { flaw, writes: Arc::default() }
    }

    /// Writes under a fence; says whether it was taken.
    pub(super) fn write(&self, id: RecordId, fence: u64) -> bool {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = writes.accepted.entry(id).or_default();
        let is_current = accepted.last().is_none_or(|seen| *seen <= fence);
        if is_current || self.flaw == Flaw::NoFencing {
            accepted.push(fence);
            return true;
        }
        writes.refused += 1;
        false
    }

    pub(super) fn refused(&self) -> u64 {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).refused
    }

    /// The fences under which writes were taken, in order, by key.
    pub(super) fn accepted(&self) -> BTreeMap<RecordId, Vec<u64>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).accepted.clone()
    }
}
