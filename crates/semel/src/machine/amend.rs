//! What may be noted in a record without deciding anything: finished steps, an unknown outcome, counts of duplicates.

use super::ruling::{Ruling, live};
use super::settle::{Proof, runs_under};
use crate::clock::Timestamp;
use crate::record::{Duplicates, Record, Running, State, Step};

/// What `step` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// The step's value is stored: the next attempt need not repeat it.
    Stored,
    /// Another run took over, or the record is gone: nothing changed.
    Lost,
}

/// Decides whether the value of a finished step may be stored. A step is stored once; a second value
/// under its name is the retry of a lost reply and changes nothing.
pub fn step(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    step: &Step,
    now: Timestamp,
) -> Ruling<Stepped> {
    let permit = permit.into();
    let Some((record, running)) =
        live(found, now).and_then(|record| runs_under(record, permit).map(|running| (record, running)))
    else {
        return Ruling::unchanged(Stepped::Lost);
    };
    if running.steps.iter().any(|known| known.name == step.name) {
        return Ruling::unchanged(Stepped::Stored);
    }
    let mut running: Running = running.clone();
    running.steps.push(step.clone());
    Ruling::write(Stepped::Stored, record.in_state(State::Running(running)), now)
}

/// Decides whether a run may note that its outcome is unknown. The lease stays as it is: when it ends, the lapse policy
/// decides.
pub fn outcome_unknown(found: Option<&Record>, permit: impl Into<Proof>, now: Timestamp) -> Ruling<Stepped> {
    step(found, permit, &Step::outcome_unknown(), now)
}

/// Adds duplicates that were gathered in a process. A record that is gone has nothing to count them on.
pub fn count_duplicates(found: Option<&Record>, seen: Duplicates, now: Timestamp) -> Ruling<()> {
    let Some(record) = live(found, now) else {
        return Ruling::unchanged(());
    };
    let duplicates = Duplicates {
        count: record.duplicates.count.saturating_add(seen.count),
        last_seen_at: record.duplicates.last_seen_at.max(seen.last_seen_at),
    };
    Ruling::write((), Record { duplicates, ..record.clone() }, now)
}
