//! What a record becomes in another store.

use semel::clock::Timestamp;
use semel::record::{Draft, Held, Record, Released, State, Step};
use semel::store::Swap;

/// Why a record that was running is held or released.
const IMPORTED: &str = "imported";
/// The moment that a store stamps itself.
const NOW: Timestamp = Timestamp::from_micros(0);

/// What becomes of a record that was running: its permit was granted by another store, under fences that mean nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRunning {
    /// Held until somebody decides.
    Hold,
    /// Released: whoever says so knows that nothing runs any more.
    Release,
}

/// The record as it is to be in this store; `None` if its time is over.
pub(super) fn adopt(record: Record, if_running: IfRunning, now: Timestamp) -> Option<Swap> {
    let record = settled(record, if_running);
    if !was_running(&record) && !record.is_live(now) {
        return None;
    }
    let next = Draft::from_unstamped(record);
    let keep = next.keep(now);
    Some(Swap { expected: None, next, keep })
}

/// Whether an adopted record was running before.
pub(super) fn was_running(record: &Record) -> bool {
    match &record.state {
        State::Released(released) => released.settled_at == NOW,
        State::Held(held) => held.held_at == NOW,
        State::Running(_) | State::Done(_) => false,
    }
}

fn settled(mut record: Record, if_running: IfRunning) -> Record {
    let State::Running(running) = &mut record.state else { return record };
    let steps: Vec<Step> = std::mem::take(&mut running.steps);
    record.state = match if_running {
        IfRunning::Hold => State::Held(Held { held_at: NOW, reason: IMPORTED.into(), steps }),
        IfRunning::Release => State::Released(Released { settled_at: NOW, reason: IMPORTED.into(), steps }),
    };
    record
}

/// Whether a record that is there is the one that an earlier try of the same import wrote.
pub(super) fn is_the_same(there: &Record, imported: &Record) -> bool {
    let mut there = there.clone();
    // What the store stamps, and what later duplicates and mismatches change.
    there.version = imported.version;
    there.changed_at = imported.changed_at;
    there.duplicates = imported.duplicates;
    there.mismatches = imported.mismatches.clone();
    match (&mut there.state, &imported.state) {
        (State::Held(there), State::Held(imported)) if imported.held_at == NOW => there.held_at = NOW,
        (State::Released(there), State::Released(imported)) if imported.settled_at == NOW => {
            there.settled_at = NOW;
        }
        _ => {}
    }
    there == *imported
}
