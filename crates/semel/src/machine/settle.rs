//! How a run ends: complete, release, hold, renew, and resolve for what is held.

use std::time::Duration;

use super::claim::{done, held};
use super::ruling::{Ruling, live};
use crate::clock::Timestamp;
use crate::outcome::Outcome;
use crate::record::{PermitId, Record, Released, Running, State, Version};

/// What shows that a caller holds a run: the permit id, and the fence if it ever heard it.
///
/// The id alone would do if no ask outlived its record. A claim that is delivered once more after its record was
/// swept makes a new record under the old id, and only the fence tells that run from the one that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Minted by the caller.
    pub permit_id: PermitId,
    /// The fence it was granted; `None` if the grant was never heard.
    pub fence: Option<Version>,
}

impl From<PermitId> for Proof {
    fn from(permit_id: PermitId) -> Self {
        Self { permit_id, fence: None }
    }
}

impl Proof {
    fn is_of(self, permit_id: PermitId, fence: Version) -> bool {
        self.permit_id == permit_id && self.fence.is_none_or(|heard| heard == fence)
    }
}

/// What `complete` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The outcome is stored, now or by an earlier try of the same complete.
    Done,
    /// Another run took over, or the record is gone: nothing changed.
    Lost,
}

/// What `release` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The next claim runs.
    Released,
    /// This permit holds nothing; nothing changed.
    NotHolding,
}

/// What `hold` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAnswer {
    /// Nobody runs until a person or a probe decides.
    Held,
    /// This permit holds nothing; nothing changed.
    NotHolding,
}

/// What `renew` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease starts anew.
    Renewed,
    /// Another run took over, or the record is gone: stop.
    Lost,
}

/// How a held record is to be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The effect landed, with this outcome: retries replay it.
    Done(Outcome),
    /// The effect did not land: the next claim runs.
    Release {
        /// Why, in words for people.
        reason: Box<str>,
    },
}

/// What `resolve` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The record is settled.
    Resolved,
    /// The record is not held; nothing changed.
    NotHeld,
}

/// Decides the end of a run with an outcome.
pub fn complete(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    outcome: &Outcome,
    now: Timestamp,
) -> Ruling<Completed> {
    let permit = permit.into();
    match live(found, now) {
        Some(record) if runs_under(record, permit).is_some() => {
            Ruling::write(Completed::Done, done(record, permit.permit_id, outcome.clone()), now)
        }
        Some(Record { state: State::Done(done), .. })
            if permit.is_of(done.permit_id, done.fence) && done.outcome == *outcome =>
        {
            Ruling::unchanged(Completed::Done)
        }
        _ => Ruling::unchanged(Completed::Lost),
    }
}

/// Decides the end of a run without one.
pub fn release(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    reason: &str,
    now: Timestamp,
) -> Ruling<ReleaseAnswer> {
    match live(found, now) {
        Some(record) if runs_under(record, permit.into()).is_some() => {
            Ruling::write(ReleaseAnswer::Released, released(record, reason), now)
        }
        _ => Ruling::unchanged(ReleaseAnswer::NotHolding),
    }
}

/// Decides the end of a run that nobody may repeat before somebody has looked at it.
pub fn hold(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    reason: &str,
    now: Timestamp,
) -> Ruling<HoldAnswer> {
    match live(found, now) {
        Some(record) if runs_under(record, permit.into()).is_some() => {
            Ruling::write(HoldAnswer::Held, held(record, reason), now)
        }
        _ => Ruling::unchanged(HoldAnswer::NotHolding),
    }
}

/// Decides whether a lease starts anew.
pub fn renew(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    lease: Duration,
    now: Timestamp,
) -> Ruling<Renewed> {
    let permit = permit.into();
    let Some((record, running)) =
        live(found, now).and_then(|record| runs_under(record, permit).map(|running| (record, running)))
    else {
        return Ruling::unchanged(Renewed::Lost);
    };
    let renewed = Running { leased_at: Timestamp::UNSTAMPED, lease, ..running.clone() };
    Ruling::write(Renewed::Renewed, record.in_state(State::Running(renewed)), now)
}

/// Decides what becomes of a held record. `permit_id` is minted by whoever resolves.
pub fn resolve(
    found: Option<&Record>,
    permit_id: PermitId,
    resolution: &Resolution,
    now: Timestamp,
) -> Ruling<Resolved> {
    match (live(found, now), resolution) {
        (Some(record @ Record { state: State::Held(_), .. }), Resolution::Done(outcome)) => {
            Ruling::write(Resolved::Resolved, done(record, permit_id, outcome.clone()), now)
        }
        (Some(record @ Record { state: State::Held(_), .. }), Resolution::Release { reason }) => {
            // Whoever releases a held record wants it to run: without the pardon, a record held for its
            // attempts would be held again at once.
            let next = Record { pardoned: record.attempt, ..released(record, reason) };
            Ruling::write(Resolved::Resolved, next, now)
        }
        (Some(Record { state: State::Done(done), .. }), Resolution::Done(outcome))
            if done.permit_id == permit_id && done.outcome == *outcome =>
        {
            // The reply to the first try was lost.
            Ruling::unchanged(Resolved::Resolved)
        }
        _ => Ruling::unchanged(Resolved::NotHeld),
    }
}

/// The run that this permit holds, lapsed or not: until somebody takes over, it is still its own.
pub(super) fn runs_under(record: &Record, permit: Proof) -> Option<&Running> {
    match &record.state {
        State::Running(running) if permit.is_of(running.permit_id, running.fence) => Some(running),
        State::Running(_) | State::Done(_) | State::Released(_) | State::Held(_) => None,
    }
}

fn released(record: &Record, reason: &str) -> Record {
    let released =
        Released { settled_at: Timestamp::UNSTAMPED, reason: reason.into(), steps: record.steps().to_vec() };
    record.in_state(State::Released(released))
}
