//! What runs and what is held: few records, which people look for, so they are found without a scan.

use std::collections::BTreeSet;

use semel::record::StateKind;

use super::entry::{Due, Entry};
use crate::format::frame::IndexKey;

/// The records that are not settled.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// By the end of their keep, because a sweep asks for the first ones.
    running: BTreeSet<(Due, IndexKey)>,
    held: BTreeSet<IndexKey>,
}

impl Unsettled {
    pub(crate) fn add(&mut self, entry: &Entry) {
        match entry.state() {
            StateKind::Running => drop(self.running.insert((entry.due, entry.id))),
            StateKind::Held => drop(self.held.insert(entry.id)),
            StateKind::Done | StateKind::Released => {}
        }
    }

    pub(crate) fn remove(&mut self, entry: &Entry) {
        match entry.state() {
            StateKind::Running => drop(self.running.remove(&(entry.due, entry.id))),
            StateKind::Held => drop(self.held.remove(&entry.id)),
            StateKind::Done | StateKind::Released => {}
        }
    }

    /// The running records whose keep ends at or before `latest`, earliest first.
    pub(crate) fn running_due(&self, latest: Due) -> impl Iterator<Item = IndexKey> {
        self.running.range(..=(latest, [u8::MAX; 16])).map(|(_, id)| *id)
    }

    /// The ids of the records that may be in these states from half an id on, in their order, at most so many.
    pub(crate) fn from(&self, states: &[StateKind], first: Option<&IndexKey>, limit: usize) -> Vec<IndexKey> {
        let wants = |state: StateKind| states.contains(&state);
        // A run whose lease lapsed under `hold` is held. What runs under `hold` is kept for ever, so among the others
        // there is none.
        let least = if wants(StateKind::Running) { Due(0) } else { Due::NEVER };
        let running = self.running.range((least, [0; 16])..).map(|(_, id)| *id);
        let held = self.held.iter().copied().filter(|_| wants(StateKind::Held));
        let mut ids: Vec<_> =
            running.chain(held).filter(|id| first.is_none_or(|first| id >= first)).collect();
        ids.sort_unstable();
        ids.truncate(limit);
        ids
    }
}
