//! What must be found after a power cut, and the check that it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::{Draft, Keep, Record, Version};
use semel::store::{Scan, Store};

use crate::sync::{loaded, ready};

/// What must be found.
#[derive(Clone)]
pub(crate) struct Expected {
    pub(crate) lives: BTreeMap<RecordId, Life>,
    /// The latest stamp that anybody was told of.
    pub(crate) stamped: Timestamp,
    /// Where the clock stood.
    pub(crate) clock: Timestamp,
}

/// What must be found for one key.
#[derive(Clone, Default)]
pub(crate) struct Life {
    /// The last record that was acknowledged, and until when it must be kept.
    pub(crate) last: Option<(Arc<Record>, Option<Timestamp>)>,
    /// What was asked for after it without an answer: each may have taken, or not.
    pub(crate) in_flight: Vec<InFlight>,
}

/// A swap without an answer.
#[derive(Clone)]
pub(crate) struct InFlight {
    pub(crate) next: Draft,
    /// Until when it must be kept at the least, if it took.
    pub(crate) until: Option<Timestamp>,
}

impl Expected {
    /// A write was acknowledged: whatever was in flight before it is over.
    pub(crate) fn acknowledge(&mut self, record: &Arc<Record>, keep: Keep) {
        let life = self.lives.entry(record.key.id()).or_default();
        life.in_flight.clear();
        life.last = Some((Arc::clone(record), keep.until(record.changed_at)));
        self.stamped = self.stamped.max(record.changed_at);
        self.clock = self.clock.max(record.changed_at);
    }

    /// Holds the store against it, by loading and by scanning.
    pub(crate) fn check(&self, store: &dyn Store) -> Result<(), String> {
        let ids: Vec<RecordId> = self.lives.keys().copied().collect();
        let loaded = loaded(store, ids).map_err(|error| format!("load: {error:?}"))?;
        if loaded.now < self.stamped {
            return Err(format!(
                "now is {} and was {} when something was acknowledged",
                loaded.now, self.stamped
            ));
        }
        for ((id, life), found) in self.lives.iter().zip(&loaded.value) {
            life.check(found.as_deref(), loaded.now.max(self.clock))
                .map_err(|what| format!("{}: {what}", id.short()))?;
        }
        let scanned = scan_all(store)?;
        let loaded: Vec<Arc<Record>> = loaded.value.into_iter().flatten().collect();
        if scanned == loaded {
            return Ok(());
        }
        Err(format!("a scan shows {} records, and {} can be loaded", scanned.len(), loaded.len()))
    }
}

impl Life {
    fn check(&self, found: Option<&Record>, now: Timestamp) -> Result<(), String> {
        let over = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
        let last = self.last.as_ref();
        let Some(found) = found else {
            let may_be_gone = last.is_none_or(|(_, until)| over(*until))
                || self.in_flight.iter().any(|write| over(write.until));
            return if may_be_gone { Ok(()) } else { Err(format!("{:?} is lost", self.version())) };
        };
        if last.is_some_and(|(record, _)| **record == *found) {
            return Ok(());
        }
        let took = |write: &InFlight| *write.next.clone().stamp(found.version, found.changed_at) == *found;
        if found.version > self.version() && self.in_flight.iter().any(took) {
            return Ok(());
        }
        Err(format!(
            "{:?} {} is served, and {:?} was acknowledged last",
            found.version,
            found.state.kind().as_str(),
            self.version()
        ))
    }

    /// The greatest version that was acknowledged.
    pub(crate) fn version(&self) -> Version {
        self.last.as_ref().map_or(Version::default(), |(record, _)| record.version)
    }
}

/// All records, page by page.
pub(crate) fn scan_all(store: &dyn Store) -> Result<Vec<Arc<Record>>, String> {
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let scan = Scan { after, limit: 17, ..Scan::default() };
        let page = ready(store.scan(scan)).map_err(|error| format!("scan: {error:?}"))?.value;
        if let Some((id, why)) = page.damaged.first() {
            return Err(format!("scan: {}: {why:?}", id.short()));
        }
        records.extend(page.records);
        after = page.next;
        if after.is_none() {
            return Ok(records);
        }
    }
}
