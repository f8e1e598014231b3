//! Who may run: the claim rules, and `record_once`, which claims and completes in one write.

use std::sync::Arc;
use std::time::Duration;

use super::ruling::{Ruling, live};
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::policy::Lapse;
use crate::record::{Done, Duplicates, Held, Mismatches, PermitId, Record, Running, State, Step, Version};

/// Everything the machine needs to know of a claim.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What must happen once.
    pub key: Key,
    /// What the request looks like, if the caller says.
    pub fingerprint: Option<Fingerprint>,
    /// Minted by the caller; the same on every retry of this ask.
    pub permit_id: PermitId,
    /// Who asks.
    pub owner: Arc<str>,
    /// What the owner's own running record means.
    pub reentry: Reentry,
    /// How long the permit is good without renewal.
    pub lease: Duration,
    /// How long the record is remembered once settled.
    pub retention: Duration,
    /// What a lapse of this run will mean.
    pub lapse: Lapse,
    /// How many runs may be granted.
    pub attempts_max: Option<u32>,
    /// The event that asks, if any.
    pub first_event: Option<Box<str>>,
    /// Whether the caller can look if the effect of a lapsed run landed.
    pub probe: Probe,
}

/// What a running record of the same owner means to a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reentry {
    /// Busy, like anybody's.
    #[default]
    Refused,
    /// The owner restarted: it takes over from itself, as the next attempt.
    Allowed,
}

/// What the caller knows of the effect of a lapsed run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// It has no way to look.
    #[default]
    None,
    /// It can look, if asked to.
    Offered,
    /// It looked: the effect landed, with this outcome.
    Landed(Outcome),
    /// It looked: the effect did not land.
    NotLanded,
    /// It looked, and cannot tell.
    CannotTell,
}

/// What a claim is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Run, under the permit in the record that was written.
    Run,
    /// The work is done; its outcome is in the record.
    Replay,
    /// Another caller runs; ask again after this long.
    Busy {
        /// What is left of its lease.
        retry_after: Duration,
    },
    /// Another request was made under this key.
    Mismatch,
    /// Nobody may run until somebody decides.
    Held,
    /// Look whether the effect landed, then ask again with what was found.
    Look,
}

/// Why a record is held.
pub(crate) const LAPSED: &str = "lapsed";
/// Why a record is held.
pub(crate) const ATTEMPTS: &str = "attempts";

/// Decides a claim.
pub fn claim(found: Option<&Record>, ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    let Some(record) = live(found, now) else {
        return grant_first(ask, now);
    };
    if let Some(other) = mismatching(record, ask) {
        return mismatch(record, other, now);
    }
    match &record.state {
        State::Running(running) if running.lease_is_good(now) => claim_running(record, running, ask, now),
        State::Running(running) => claim_lapsed(record, running, ask, now),
        State::Released(_) => grant_again(record, ask, now),
        State::Held(_) => Ruling::unchanged(Claimed::Held),
        State::Done(_) => Ruling::unchanged(Claimed::Replay),
    }
}

/// What `record_once` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The outcome is stored, by this ask.
    Recorded,
    /// Not stored: the key is taken, and this is what a claim would be told.
    Refused(Claimed),
}

/// Decides a claim that brings its outcome along.
pub fn record_once(found: Option<&Record>, ask: &Ask, outcome: &Outcome, now: Timestamp) -> Ruling<Recorded> {
    if let Some(State::Done(done)) = live(found, now).map(|record| &record.state)
        && done.permit_id == ask.permit_id
        && done.outcome == *outcome
    {
        // The reply to the first ask was lost; this is its retry, not a duplicate.
        return Ruling::unchanged(Recorded::Recorded);
    }
    let Ruling { answer, write } = claim(found, ask, now);
    match (answer, write) {
        (Claimed::Run, Some(write)) => {
            let granted = write.next.unstamped();
            Ruling::write(Recorded::Recorded, done(granted, ask.permit_id, outcome.clone()), now)
        }
        (refusal, write) => Ruling { answer: Recorded::Refused(refusal), write },
    }
}

/// The fingerprint that disagrees with the record's, if there is one. After a release the key is free
/// again, so a new request may take it.
fn mismatching(record: &Record, ask: &Ask) -> Option<Fingerprint> {
    match (&record.state, record.fingerprint, ask.fingerprint) {
        (State::Running(_) | State::Done(_) | State::Held(_), Some(first), Some(other)) => {
            (first != other).then_some(other)
        }
        _ => None,
    }
}

fn mismatch(record: &Record, other: Fingerprint, now: Timestamp) -> Ruling<Claimed> {
    let mut next = record.clone();
    next.mismatches.add(other);
    Ruling::write(Claimed::Mismatch, next, now)
}

fn claim_running(record: &Record, running: &Running, ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    if running.permit_id == ask.permit_id {
        let renewed = Running { leased_at: Timestamp::UNSTAMPED, lease: ask.lease, ..running.clone() };
        return Ruling::write(Claimed::Run, record.in_state(State::Running(renewed)), now);
    }
    if ask.reentry == Reentry::Allowed && running.owner == ask.owner {
        return Ruling::write(Claimed::Run, next_attempt(record, ask), now);
    }
    Ruling::unchanged(Claimed::Busy { retry_after: running.lease_until().since(now) })
}

fn claim_lapsed(record: &Record, running: &Running, ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    match (record.lapse, &ask.probe) {
        (Lapse::Rerun, _) | (Lapse::Hold, Probe::NotLanded) => grant_again(record, ask, now),
        (Lapse::Hold, Probe::Offered) => Ruling::unchanged(Claimed::Look),
        (Lapse::Hold, Probe::Landed(outcome)) => {
            let next = done(record, running.permit_id, outcome.clone());
            Ruling::write(Claimed::Replay, next, now)
        }
        (Lapse::Hold, Probe::None | Probe::CannotTell) => hold(record, LAPSED, now),
    }
}

fn grant_first(ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    let next = Record {
        key: ask.key.clone(),
        fingerprint: ask.fingerprint,
        state: State::Running(running(ask, Vec::new())),
        attempt: 1,
        pardoned: 0,
        lapse: ask.lapse,
        retention: ask.retention,
        first_seen_at: Timestamp::UNSTAMPED,
        changed_at: Timestamp::UNSTAMPED,
        first_event: ask.first_event.clone(),
        mismatches: Mismatches::default(),
        duplicates: Duplicates::default(),
        version: Version::UNSTAMPED,
    };
    Ruling::write(Claimed::Run, next, now)
}

fn grant_again(record: &Record, ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    let counted = record.attempt.saturating_sub(record.pardoned);
    if ask.attempts_max.is_some_and(|most| counted >= most) {
        return hold(record, ATTEMPTS, now);
    }
    Ruling::write(Claimed::Run, next_attempt(record, ask), now)
}

fn next_attempt(record: &Record, ask: &Ask) -> Record {
    // Steps of another request must not be taken for steps of this one.
    let same_request = match (record.fingerprint, ask.fingerprint) {
        (Some(first), Some(this)) => first == this,
        (None, _) | (_, None) => true,
    };
    let steps = if same_request { record.steps().to_vec() } else { Vec::new() };
    Record {
        fingerprint: ask.fingerprint.or(record.fingerprint),
        attempt: record.attempt.saturating_add(1),
        lapse: ask.lapse,
        retention: ask.retention,
        ..record.in_state(State::Running(running(ask, steps)))
    }
}

fn running(ask: &Ask, steps: Vec<Step>) -> Running {
    Running {
        permit_id: ask.permit_id,
        owner: Arc::clone(&ask.owner),
        fence: Version::UNSTAMPED,
        granted_at: Timestamp::UNSTAMPED,
        leased_at: Timestamp::UNSTAMPED,
        lease: ask.lease,
        steps,
    }
}

fn hold(record: &Record, reason: &str, now: Timestamp) -> Ruling<Claimed> {
    Ruling::write(Claimed::Held, held(record, reason), now)
}

/// The record as held, with the steps that it had.
pub(super) fn held(record: &Record, reason: &str) -> Record {
    let held = Held { held_at: Timestamp::UNSTAMPED, reason: reason.into(), steps: record.steps().to_vec() };
    record.in_state(State::Held(held))
}

/// The record as done, under the fence of the run that it had.
pub(super) fn done(record: &Record, permit_id: PermitId, outcome: Outcome) -> Record {
    let fence = match &record.state {
        State::Running(running) => running.fence,
        State::Done(_) | State::Released(_) | State::Held(_) => Version::UNSTAMPED,
    };
    let done = Done { permit_id, fence, settled_at: Timestamp::UNSTAMPED, outcome };
    record.in_state(State::Done(done))
}
