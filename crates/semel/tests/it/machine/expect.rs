//! What each kind of write must look like, field by field, once the store has stamped it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::machine::claim::Ask;
use semel::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, Held, HoldReason, Keep, Mismatches, PermitId, Record,
    Released, Running, State, Step, Version,
};
use semel::{Fingerprint, Lapse, Outcome};

use super::case::{
    ATTEMPT, Found, GRANTED_AT, LEASE_END, LEASED_AT, Moment, NOTED_REQUEST, grant, past_attempt, steps,
};

/// The version that the store gives the write.
pub(super) const NEXT_VERSION: Version = Version::new(9);
const OPEN: Timestamp = Timestamp::from_micros(0);

/// When the store stamps: a little after the moment that the ruling was made for, so that one taken for the
/// other shows.
pub(super) fn stamped_at(moment: Moment) -> Timestamp {
    Timestamp::from_micros(moment.micros() + 3)
}

/// What must be written, if anything.
pub(super) type Expected = Option<(Record, Keep)>;

#[expect(clippy::unnecessary_wraps, reason = "an expectation like those that expect no write")]
fn written(next: Record, moment: Moment, keep: Keep) -> Expected {
    Some((Record { changed_at: stamped_at(moment), version: NEXT_VERSION, ..next }, keep))
}

fn kept_while_running(lapse: Lapse, lease: Duration, retention: Duration) -> Keep {
    match lapse {
        Lapse::Rerun => Keep::For(lease + retention),
        Lapse::Hold => Keep::Forever,
    }
}

fn granted(ask: &Ask, steps: Vec<Step>, moment: Moment) -> State {
    State::Running(Running {
        grant: Grant {
            permit_id: ask.permit_id,
            owner: Arc::clone(&ask.owner),
            fence: NEXT_VERSION,
            granted_at: stamped_at(moment),
        },
        leased_at: stamped_at(moment),
        lease: ask.lease,
        steps,
    })
}

/// The history of a record once another than its run has decided what comes next.
fn history(found: Found, moment: Moment) -> Vec<EndedAttempt> {
    let (until, end, reason) = match found {
        Found::RunningRerun | Found::RunningHold if moment.lease_lapsed() => {
            (LEASE_END, AttemptEnd::Lapsed, "")
        }
        Found::RunningRerun | Found::RunningHold => {
            (moment.micros(), AttemptEnd::Lapsed, "its owner claimed it again")
        }
        Found::Released => (LEASED_AT, AttemptEnd::Released, "no funds"),
        Found::Held | Found::HeldProbed => (LEASED_AT, AttemptEnd::Lapsed, ""),
        Found::HeldForAttempts => (LEASED_AT, AttemptEnd::Held, "attempts"),
        Found::Done | Found::Absent => panic!("no attempt follows {found:?}"),
    };
    let last = EndedAttempt {
        number: ATTEMPT,
        owner: "worker-1".into(),
        from: Timestamp::from_micros(GRANTED_AT),
        until: Timestamp::from_micros(until),
        end,
        reason: reason.into(),
    };
    vec![past_attempt(), last]
}

/// Everything comes from the ask; nothing is left of what was there.
pub(super) fn first_run(ask: &Ask, moment: Moment) -> Expected {
    let next = Record {
        key: ask.key.clone(),
        fingerprint: ask.fingerprint,
        label: ask.label.clone(),
        state: granted(ask, Vec::new(), moment),
        attempt: 1,
        attempts_forgiven: 0,
        past_attempts: Vec::new(),
        lapse: ask.lapse,
        retention: ask.retention,
        first_seen_at: stamped_at(moment),
        changed_at: OPEN,
        first_event: ask.first_event.clone(),
        mismatches: Mismatches { count: 0, fingerprints: Vec::new() },
        duplicates: Duplicates { count: 0, last_seen_at: None },
        version: NEXT_VERSION,
    };
    written(next, moment, kept_while_running(ask.lapse, ask.lease, ask.retention))
}

/// A new permit over what was there: the policy is the ask's, the history is the record's.
pub(super) fn next_run(
    found: Found,
    record: &Record,
    ask: &Ask,
    steps: Vec<Step>,
    moment: Moment,
) -> Expected {
    let fingerprint = if ask.fingerprint.is_some() { ask.fingerprint } else { record.fingerprint };
    let next = Record {
        fingerprint,
        label: ask.label.clone(),
        state: granted(ask, steps, moment),
        attempt: record.attempt + 1,
        past_attempts: history(found, moment),
        lapse: ask.lapse,
        retention: ask.retention,
        ..record.clone()
    };
    written(next, moment, kept_while_running(ask.lapse, ask.lease, ask.retention))
}

/// The same permit, fence and grant with a new lease.
pub(super) fn renewed(record: &Record, lease: Duration, moment: Moment) -> Expected {
    let mut next = record.clone();
    if let State::Running(running) = &mut next.state {
        running.leased_at = stamped_at(moment);
        running.lease = lease;
    }
    let keep = kept_while_running(record.lapse, lease, record.retention);
    written(next, moment, keep)
}

/// Held since the end of its lease, with the run's own grant; probed at `probed_at`, if it is about to be.
pub(super) fn held_as_lapsed(record: &Record, probed_at: Option<Timestamp>, moment: Moment) -> Expected {
    let held_at = match &record.state {
        State::Held(held) => held.held_at,
        State::Running(_) | State::Done(_) | State::Released(_) => Timestamp::from_micros(LEASE_END),
    };
    let held = Held { grant: grant(), held_at, reason: HoldReason::Lapsed, probed_at, steps: steps() };
    written(Record { state: State::Held(held), ..record.clone() }, moment, Keep::Forever)
}

/// Held from now on, because the attempts are used up; how the last one ended is kept.
pub(super) fn held_for_attempts(found: Found, record: &Record, moment: Moment) -> Expected {
    let past_attempts = history(found, moment);
    held(&Record { past_attempts, ..record.clone() }, HoldReason::Attempts, moment)
}

pub(super) fn held(record: &Record, reason: HoldReason, moment: Moment) -> Expected {
    let held = Held { grant: grant(), held_at: stamped_at(moment), reason, probed_at: None, steps: steps() };
    written(Record { state: State::Held(held), ..record.clone() }, moment, Keep::Forever)
}

/// A run that gives up keeps its grant, and is no past attempt yet.
pub(super) fn released(record: &Record, reason: &str, moment: Moment) -> Expected {
    released_under(grant(), record, reason, moment)
}

/// The same, of a run with these steps.
pub(super) fn released_with(steps: Vec<Step>, record: &Record, reason: &str, moment: Moment) -> Expected {
    let (mut next, keep) = released(record, reason, moment)?;
    if let State::Released(released) = &mut next.state {
        released.steps = steps;
    }
    Some((next, keep))
}

/// A record that was released by another has the grant of that decision, and the run in its history.
pub(super) fn released_by(
    permit_id: PermitId,
    found: Found,
    record: &Record,
    reason: &str,
    moment: Moment,
) -> Expected {
    let grant = Grant { permit_id, fence: NEXT_VERSION, ..grant() };
    let record =
        Record { attempts_forgiven: ATTEMPT, past_attempts: history(found, moment), ..record.clone() };
    released_under(grant, &record, reason, moment)
}

/// A run that an operator took away: under the operator's permit id, and otherwise as a run that gave up.
pub(super) fn revoked(by: PermitId, record: &Record, reason: &str, moment: Moment) -> Expected {
    released_under(Grant { permit_id: by, ..grant() }, record, reason, moment)
}

fn released_under(grant: Grant, record: &Record, reason: &str, moment: Moment) -> Expected {
    let released = Released { grant, settled_at: stamped_at(moment), reason: reason.into(), steps: steps() };
    let next = Record { state: State::Released(released), ..record.clone() };
    written(next, moment, Keep::For(record.retention))
}

/// A run that was granted before ends: its grant stays.
pub(super) fn run_done(record: &Record, outcome: &Outcome, moment: Moment) -> Expected {
    done(record, grant(), outcome, moment)
}

/// A run that another found to be done: its grant stays, and how it ended is in the history.
pub(super) fn found_done(found: Found, record: &Record, outcome: &Outcome, moment: Moment) -> Expected {
    let past_attempts = history(found, moment);
    run_done(&Record { past_attempts, ..record.clone() }, outcome, moment)
}

/// A record that was decided by another: under the permit of that decision, with the run in its history.
pub(super) fn decided_done(
    permit_id: PermitId,
    found: Found,
    record: &Record,
    outcome: &Outcome,
    moment: Moment,
) -> Expected {
    let past_attempts = history(found, moment);
    let grant = Grant { permit_id, fence: NEXT_VERSION, ..grant() };
    done(&Record { past_attempts, ..record.clone() }, grant, outcome, moment)
}

/// No run had this fence: the write that settles is the one that grants.
pub(super) fn done_at_once(granted: &Record, outcome: &Outcome, moment: Moment) -> Expected {
    done(granted, granted.state.grant().clone(), outcome, moment)
}

fn done(record: &Record, grant: Grant, outcome: &Outcome, moment: Moment) -> Expected {
    let done = Done { grant, settled_at: stamped_at(moment), outcome: outcome.clone() };
    written(Record { state: State::Done(done), ..record.clone() }, moment, Keep::For(record.retention))
}

pub(super) fn mismatched(found: Found, record: &Record, other: Fingerprint, moment: Moment) -> Expected {
    let fingerprints = if other == NOTED_REQUEST { vec![NOTED_REQUEST] } else { vec![NOTED_REQUEST, other] };
    let next = Record { mismatches: Mismatches { count: 5, fingerprints }, ..record.clone() };
    noted(found, next, moment)
}

/// A write that only notes something: whatever ends, ends when it would have ended without it.
pub(super) fn noted(found: Found, next: Record, moment: Moment) -> Expected {
    let keep = match found.life_end() {
        Some(end) => Keep::For(Duration::from_micros(end - moment.micros())),
        None => Keep::Forever,
    };
    written(next, moment, keep)
}

/// Holds a ruling against what is expected of it: the answer, the record in every field, and its keep.
pub(super) fn check<A, C>(ruling: Ruling<A>, answer: &A, expected: Expected, moment: Moment, case: &C)
where
    A: Debug + PartialEq,
    C: Debug,
{
    assert_eq!(ruling.answer, *answer, "{case:?}");
    let Some(write) = ruling.write else {
        assert_eq!(expected, None, "nothing was written: {case:?}");
        return;
    };
    let Some((next, keep)) = expected else { panic!("something was written: {case:?}") };
    assert_eq!(write.keep, keep, "{case:?}");
    assert_eq!(*write.next.key(), next.key, "{case:?}");
    assert_eq!(stamped_by_a_server(write.next.unstamped(), moment), next, "{case:?}");
    assert_eq!(*write.next.stamp(NEXT_VERSION, stamped_at(moment)), next, "{case:?}");
}

/// What a store does that stamps with its own code: it sets what is zero.
fn stamped_by_a_server(draft: &Record, moment: Moment) -> Record {
    let mut record = draft.clone();
    let (grant, settled_or_leased_at) = match &mut record.state {
        State::Running(running) => (&mut running.grant, &mut running.leased_at),
        State::Done(done) => (&mut done.grant, &mut done.settled_at),
        State::Released(released) => (&mut released.grant, &mut released.settled_at),
        State::Held(held) => (&mut held.grant, &mut held.held_at),
    };
    if grant.fence.get() == 0 {
        grant.fence = NEXT_VERSION;
    }
    let moments = [&mut grant.granted_at, settled_or_leased_at];
    for open in moments.into_iter().chain([&mut record.first_seen_at]).filter(|moment| **moment == OPEN) {
        *open = stamped_at(moment);
    }
    Record { changed_at: stamped_at(moment), version: NEXT_VERSION, ..record }
}
