//! Who may run: the claim rules, and `record_once`, which claims and completes in one write.

use std::sync::Arc;
use std::time::Duration;

use super::ruling::{Ruling, live};
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::policy::Lapse;
use crate::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, Held, HoldReason, Mismatches, PermitId, Record,
    Running, State, Step, Version,
};

/// How long after a claim began to probe a held record another may do so.
pub const PROBE_PAUSE: Duration = Duration::from_secs(10);

/// Everything the machine needs to know of a claim.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What must happen once.
    pub key: Key,
    /// What the request looks like, if the caller says.
    pub fingerprint: Option<Fingerprint>,
    /// What the work is, in words for people, if the caller says.
    pub label: Option<Arc<str>>,
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
    pub first_event: Option<Arc<str>>,
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
    /// Probe whether the effect landed, then ask again with what was found.
    Probe,
}

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
        State::Running(_) => match record.lapsed_hold(now) {
            Some(held) => claim_held(record, &held, ask, now),
            None => grant_again(record, ask, now),
        },
        State::Released(_) => grant_again(record, ask, now),
        State::Held(held) => claim_held(record, held, ask, now),
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
        && done.grant.permit_id == ask.permit_id
        && done.outcome == *outcome
    {
        // The reply to the first ask was lost; this is its retry, not a duplicate.
        return Ruling::unchanged(Recorded::Recorded);
    }
    let Ruling { answer, write } = claim(found, ask, now);
    match (answer, write) {
        (Claimed::Run, Some(write)) => {
            let granted = write.next.unstamped();
            Ruling::write(
                Recorded::Recorded,
                done(granted, granted.state.grant().clone(), outcome.clone()),
                now,
            )
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
    if running.grant.permit_id == ask.permit_id {
        let renewed = Running { leased_at: Timestamp::UNSTAMPED, lease: ask.lease, ..running.clone() };
        return Ruling::write(Claimed::Run, record.in_state(State::Running(renewed)), now);
    }
    if ask.reentry == Reentry::Allowed && running.grant.owner == ask.owner {
        return Ruling::write(Claimed::Run, next_attempt(record, ask, now), now);
    }
    Ruling::unchanged(Claimed::Busy { retry_after: running.lease_until().since(now) })
}

/// Decides a claim of a record that is held, or that has lapsed under `hold` and is yet to be written as held.
fn claim_held(record: &Record, held: &Held, ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    let may_probe = !matches!(held.reason, HoldReason::Attempts);
    match &ask.probe {
        Probe::NotLanded if may_probe => grant_again(record, ask, now),
        Probe::Landed(outcome) if may_probe => {
            let next = decided(record, done(record, held.grant.clone(), outcome.clone()), now);
            Ruling::write(Claimed::Replay, next, now)
        }
        // Written before anybody probes: of all claims that bring a probe, one gets to use it.
        Probe::Offered if may_probe && is_due(held, now) => {
            let probed = Held { probed_at: Some(now), ..held.clone() };
            Ruling::write(Claimed::Probe, record.in_state(State::Held(probed)), now)
        }
        Probe::None | Probe::Offered | Probe::Landed(_) | Probe::NotLanded | Probe::CannotTell => {
            stay_held(record, held, now)
        }
    }
}

/// Held, and written as such if it is not yet.
fn stay_held(record: &Record, held: &Held, now: Timestamp) -> Ruling<Claimed> {
    match &record.state {
        State::Held(_) => Ruling::unchanged(Claimed::Held),
        State::Running(_) | State::Done(_) | State::Released(_) => {
            Ruling::write(Claimed::Held, record.in_state(State::Held(held.clone())), now)
        }
    }
}

fn is_due(held: &Held, now: Timestamp) -> bool {
    held.probed_at.is_none_or(|probed_at| now >= probed_at.plus(PROBE_PAUSE))
}

fn grant_first(ask: &Ask, now: Timestamp) -> Ruling<Claimed> {
    let next = Record {
        key: ask.key.clone(),
        fingerprint: ask.fingerprint,
        label: ask.label.clone(),
        state: State::Running(running(ask, Vec::new())),
        attempt: 1,
        attempts_forgiven: 0,
        past_attempts: Vec::new(),
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
    let counted = record.attempt.saturating_sub(record.attempts_forgiven);
    if ask.attempts_max.is_some_and(|most| counted >= most) {
        let next = decided(record, held(record, HoldReason::Attempts), now);
        return Ruling::write(Claimed::Held, next, now);
    }
    Ruling::write(Claimed::Run, next_attempt(record, ask, now), now)
}

fn next_attempt(record: &Record, ask: &Ask, now: Timestamp) -> Record {
    // Steps of another request must not be taken for steps of this one.
    let same_request = match (record.fingerprint, ask.fingerprint) {
        (Some(first), Some(this)) => first == this,
        (None, _) | (_, None) => true,
    };
    let steps = if same_request { record.finished_steps().cloned().collect() } else { Vec::new() };
    Record {
        fingerprint: ask.fingerprint.or(record.fingerprint),
        label: ask.label.clone().or_else(|| record.label.clone()),
        attempt: record.attempt.saturating_add(1),
        past_attempts: record.past_attempts_and(last_attempt(record, now)),
        lapse: ask.lapse,
        retention: ask.retention,
        ..record.in_state(State::Running(running(ask, steps)))
    }
}

/// The attempt that a next one follows. One that still runs ends now: its lease ran out, or its owner came back.
fn last_attempt(record: &Record, now: Timestamp) -> Option<EndedAttempt> {
    let State::Running(running) = &record.state else { return record.ended_attempt() };
    let (until, reason) = if running.lease_is_good(now) {
        (now, "its owner claimed it again")
    } else {
        (running.lease_until(), "")
    };
    Some(record.attempt_ended(&running.grant, until, AttemptEnd::Lapsed, reason))
}

fn running(ask: &Ask, steps: Vec<Step>) -> Running {
    Running {
        grant: Grant {
            permit_id: ask.permit_id,
            owner: Arc::clone(&ask.owner),
            fence: Version::UNSTAMPED,
            granted_at: Timestamp::UNSTAMPED,
        },
        leased_at: Timestamp::UNSTAMPED,
        lease: ask.lease,
        steps,
    }
}

/// The record as held, with the grant and the steps that it had.
pub(super) fn held(record: &Record, reason: HoldReason) -> Record {
    record.in_state(State::Held(Held {
        grant: record.state.grant().clone(),
        held_at: Timestamp::UNSTAMPED,
        reason,
        probed_at: None,
        steps: record.finished_steps().cloned().collect(),
    }))
}

/// The record as done under this grant.
pub(super) fn done(record: &Record, grant: Grant, outcome: Outcome) -> Record {
    record.in_state(State::Done(Done { grant, settled_at: Timestamp::UNSTAMPED, outcome }))
}

/// The record that follows `record` when another than its run decides: how the run ended stays in the history.
pub(super) fn decided(record: &Record, next: Record, now: Timestamp) -> Record {
    Record { past_attempts: record.past_attempts_and(last_attempt(record, now)), ..next }
}
