//! Which records a person or a tool wants to see, page by page.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::key::RecordId;
use crate::record::{Record, StateKind};

/// Which records to show; an empty filter shows all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The scope must start with these parts.
    pub scope: Vec<Box<str>>,
    /// The operation must be this one.
    pub operation: Option<Box<str>>,
    /// The name must be this one.
    pub name: Option<Box<str>>,
    /// The state must be one of these; empty for any.
    pub states: Vec<StateKind>,
    /// The record must have been first seen before this moment.
    pub first_seen_before: Option<Timestamp>,
}

impl Filter {
    /// Whether the record is to be shown at `now`. A run that lapsed under `hold` counts as held.
    pub fn matches(&self, record: &Record, now: Timestamp) -> bool {
        let mut scope = record.key.scope();
        self.scope.iter().all(|part| scope.next() == Some(part))
            && self.operation.as_deref().is_none_or(|operation| operation == record.key.operation())
            && self.name.as_deref().is_none_or(|name| name == record.key.name())
            && (self.states.is_empty() || self.states.contains(&record.kind_at(now)))
            && self.first_seen_before.is_none_or(|moment| record.first_seen_at < moment)
    }
}

/// One page of a walk through a store.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Which records to show.
    pub filter: Filter,
    /// Where the last page ended; `None` to start.
    pub after: Option<RecordId>,
    /// How many records at most.
    pub limit: usize,
}

/// Some records, and where to go on.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In the order of their ids. Records past their keep may be among them.
    pub records: Vec<Arc<Record>>,
    /// Records that cannot be read, with the reason; no filter applies to them.
    pub damaged: Vec<(RecordId, Error)>,
    /// What to give as `after` for the next page; `None` after the last.
    pub next: Option<RecordId>,
}
