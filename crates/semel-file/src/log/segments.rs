//! All segments that are read from.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::segment::Segment;

/// The segments that hold something that counts, by number.
#[derive(Default)]
pub(crate) struct Segments(RwLock<BTreeMap<u32, Arc<Segment>>>);

impl Segments {
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Segment>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn add(&self, segment: Arc<Segment>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(segment.number, segment);
    }

    pub(crate) fn remove(&self, number: u32) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
}
