//! How a run ends: complete, release, hold, renew, and resolve for what is held.

use std::time::Duration;

use super::claim::{decided, done, held};
use super::ruling::{Ruling, live};
use crate::clock::Timestamp;
use crate::outcome::Outcome;
use crate::record::{Grant, Held, HoldReason, PermitId, Record, Released, Running, State, Version};

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
    fn is_of(self, grant: &Grant) -> bool {
        self.permit_id == grant.permit_id && self.fence.is_none_or(|heard| heard == grant.fence)
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
    /// The run is done, under this permit: there is nothing to renew, and nothing is lost.
    Done,
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
            Ruling::write(Completed::Done, done(record, record.state.grant().clone(), outcome.clone()), now)
        }
        Some(Record { state: State::Done(done), .. })
            if permit.is_of(&done.grant) && done.outcome == *outcome =>
        {
            Ruling::unchanged(Completed::Done)
        }
        _ => Ruling::unchanged(Completed::Lost),
    }
}

/// Decides the end of a run without an outcome.
pub fn release(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    reason: &str,
    now: Timestamp,
) -> Ruling<ReleaseAnswer> {
    let permit = permit.into();
    match live(found, now) {
        Some(record) if runs_under(record, permit).is_some() => {
            let next = released(record, record.state.grant().clone(), reason);
            Ruling::write(ReleaseAnswer::Released, next, now)
        }
        // The reply to the first try was lost.
        Some(Record { state: State::Released(released), .. }) if permit.is_of(&released.grant) => {
            Ruling::unchanged(ReleaseAnswer::Released)
        }
        _ => Ruling::unchanged(ReleaseAnswer::NotHolding),
    }
}

/// How long the record of a run is kept that was given back with nothing to remember: long enough for the retry of a
/// release whose reply was lost.
pub const GIVEN_BACK_KEEP: Duration = Duration::from_mins(1);

/// Decides the end of a run of which nothing has to be remembered. A first attempt without steps then does not count
/// as an attempt, and its record is kept for [`GIVEN_BACK_KEEP`] at most. What came before a later attempt, or the steps
/// of this one, must be remembered: that is released like any other.
pub fn give_back(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    reason: &str,
    now: Timestamp,
) -> Ruling<ReleaseAnswer> {
    let permit = permit.into();
    match live(found, now) {
        Some(record) if runs_under(record, permit).is_some() => given_back(record, reason, now),
        _ => release(found, permit, reason, now),
    }
}

/// Why a run was released whose caller never heard of it.
pub(crate) const NEVER_STARTED: &str = "never started";

/// Decides whether a run is given back whose caller never heard that it may run. Only if nothing was written since it
/// was granted: a caller that asked again under its permit id may have started.
pub fn give_back_unheard(
    found: Option<&Record>,
    permit_id: PermitId,
    now: Timestamp,
) -> Ruling<ReleaseAnswer> {
    match live(found, now) {
        Some(record) if is_granted_by_last_write(record) && record.state.grant().permit_id == permit_id => {
            given_back(record, NEVER_STARTED, now)
        }
        _ => Ruling::unchanged(ReleaseAnswer::NotHolding),
    }
}

/// Whether the record's last write is the one that granted its run.
pub(crate) fn is_granted_by_last_write(record: &Record) -> bool {
    matches!(&record.state, State::Running(running) if running.grant.fence == record.version)
}

/// Decides whether an operator takes a run away from its caller: the next claim runs. `by` is minted by the operator: it
/// shows that a revocation took whose reply was lost.
pub fn revoke(
    found: Option<&Record>,
    run: Proof,
    by: PermitId,
    reason: &str,
    now: Timestamp,
) -> Ruling<ReleaseAnswer> {
    match live(found, now) {
        Some(record) if runs_under(record, run).is_some() => {
            let grant = Grant { permit_id: by, ..record.state.grant().clone() };
            Ruling::write(ReleaseAnswer::Released, released(record, grant, reason), now)
        }
        Some(Record { state: State::Released(released), .. }) if released.grant.permit_id == by => {
            Ruling::unchanged(ReleaseAnswer::Released)
        }
        _ => Ruling::unchanged(ReleaseAnswer::NotHolding),
    }
}

/// Decides the end of a run whose outcome is unknown: no caller repeats it before a person or a probe has decided.
pub fn hold(
    found: Option<&Record>,
    permit: impl Into<Proof>,
    reason: &str,
    now: Timestamp,
) -> Ruling<HoldAnswer> {
    let permit = permit.into();
    match live(found, now) {
        Some(record) if runs_under(record, permit).is_some() => {
            let reason = HoldReason::Unknown(reason.into());
            Ruling::write(HoldAnswer::Held, held(record, reason), now)
        }
        // The reply to the first try was lost.
        Some(Record { state: State::Held(held), .. }) if permit.is_of(&held.grant) => {
            Ruling::unchanged(HoldAnswer::Held)
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
    match live(found, now) {
        Some(record @ Record { state: State::Running(running), .. }) if permit.is_of(&running.grant) => {
            let renewed = Running { leased_at: Timestamp::UNSTAMPED, lease, ..running.clone() };
            Ruling::write(Renewed::Renewed, record.in_state(State::Running(renewed)), now)
        }
        // A heartbeat that races its own complete has lost nothing.
        Some(Record { state: State::Done(done), .. }) if permit.is_of(&done.grant) => {
            Ruling::unchanged(Renewed::Done)
        }
        _ => Ruling::unchanged(Renewed::Lost),
    }
}

/// Decides what becomes of a held record, or of one that lapsed under `hold`. `permit_id` is minted by the caller: it
/// shows that a resolve took whose reply was lost.
pub fn resolve(
    found: Option<&Record>,
    permit_id: PermitId,
    resolution: &Resolution,
    now: Timestamp,
) -> Ruling<Resolved> {
    let Some(record) = live(found, now) else { return Ruling::unchanged(Resolved::NotHeld) };
    if is_resolved_by(record, permit_id, resolution) {
        return Ruling::unchanged(Resolved::Resolved);
    }
    if !matches!(record.state, State::Held(_)) && record.lapsed_hold(now).is_none() {
        return Ruling::unchanged(Resolved::NotHeld);
    }
    let grant = Grant { permit_id, fence: Version::UNSTAMPED, ..record.state.grant().clone() };
    let next = match resolution {
        Resolution::Done(outcome) => done(record, grant, outcome.clone()),
        // A record that was held for its attempts would be held again at once, if they still counted.
        Resolution::Release { reason } => {
            Record { attempts_forgiven: record.attempt, ..released(record, grant, reason) }
        }
    };
    Ruling::write(Resolved::Resolved, decided(record, next, now), now)
}

/// Whether an earlier try of this resolve took, and its reply was lost.
fn is_resolved_by(record: &Record, permit_id: PermitId, resolution: &Resolution) -> bool {
    match (&record.state, resolution) {
        (State::Done(done), Resolution::Done(outcome)) => {
            done.grant.permit_id == permit_id && done.outcome == *outcome
        }
        (State::Released(released), Resolution::Release { .. }) => released.grant.permit_id == permit_id,
        _ => false,
    }
}

/// What `mend` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mended {
    /// The record is done with the outcome that its sibling has.
    Done,
    /// It is not a left-over of that run; nothing changed.
    Unrelated,
}

/// Decides whether a record of several that were claimed together is completed with the outcome of a sibling that is
/// done: it still runs, or has lapsed, under the permit that the sibling was completed under.
pub fn mend(
    found: Option<&Record>,
    permit_id: PermitId,
    outcome: &Outcome,
    now: Timestamp,
) -> Ruling<Mended> {
    let Some(record) = live(found, now) else { return Ruling::unchanged(Mended::Unrelated) };
    let is_left_over = match &record.state {
        State::Running(_) | State::Held(Held { reason: HoldReason::Lapsed, .. }) => {
            record.state.grant().permit_id == permit_id
        }
        State::Done(_) | State::Released(_) | State::Held(_) => false,
    };
    if !is_left_over {
        return Ruling::unchanged(Mended::Unrelated);
    }
    Ruling::write(Mended::Done, done(record, record.state.grant().clone(), outcome.clone()), now)
}

/// The run that this permit holds, lapsed or not: until another run is granted, it is still its own.
pub(super) fn runs_under(record: &Record, permit: Proof) -> Option<&Running> {
    match &record.state {
        State::Running(running) if permit.is_of(&running.grant) => Some(running),
        State::Running(_) | State::Done(_) | State::Released(_) | State::Held(_) => None,
    }
}

/// The end of a run that is given back.
fn given_back(record: &Record, reason: &str, now: Timestamp) -> Ruling<ReleaseAnswer> {
    let next = released(record, record.state.grant().clone(), reason);
    let next = if record.attempt == 1 && record.steps().is_empty() {
        Record { attempt: 0, retention: record.retention.min(GIVEN_BACK_KEEP), ..next }
    } else {
        next
    };
    Ruling::write(ReleaseAnswer::Released, next, now)
}

fn released(record: &Record, grant: Grant, reason: &str) -> Record {
    record.in_state(State::Released(Released {
        grant,
        settled_at: Timestamp::UNSTAMPED,
        reason: reason.into(),
        steps: record.finished_steps().cloned().collect(),
    }))
}
