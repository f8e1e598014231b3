//! What each kind of write must look like, field by field, once the store has stamped it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::machine::claim::Ask;
use semel::record::{
    Done, Duplicates, Held, Keep, Mismatches, PermitId, Record, Released, Running, State, Step, Version,
};
use semel::{Fingerprint, Lapse, Outcome};

use super::case::{FENCE, Found, MINE, Moment, NOTED_REQUEST};

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
        permit_id: ask.permit_id,
        owner: Arc::clone(&ask.owner),
        fence: NEXT_VERSION,
        granted_at: stamped_at(moment),
        leased_at: stamped_at(moment),
        lease: ask.lease,
        steps,
    })
}

/// Everything comes from the ask; nothing is left of what was there.
pub(super) fn first_run(ask: &Ask, moment: Moment) -> Expected {
    let next = Record {
        key: ask.key.clone(),
        fingerprint: ask.fingerprint,
        state: granted(ask, Vec::new(), moment),
        attempt: 1,
        attempts_forgiven: 0,
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
pub(super) fn next_run(record: &Record, ask: &Ask, steps: Vec<Step>, moment: Moment) -> Expected {
    let fingerprint = if ask.fingerprint.is_some() { ask.fingerprint } else { record.fingerprint };
    let next = Record {
        fingerprint,
        state: granted(ask, steps, moment),
        attempt: record.attempt + 1,
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

pub(super) fn held(record: &Record, reason: &str, moment: Moment) -> Expected {
    let held = Held { held_at: stamped_at(moment), reason: reason.into(), steps: super::case::steps() };
    written(Record { state: State::Held(held), ..record.clone() }, moment, Keep::Forever)
}

pub(super) fn released(record: &Record, reason: &str, attempts_forgiven: u32, moment: Moment) -> Expected {
    let released =
        Released { settled_at: stamped_at(moment), reason: reason.into(), steps: super::case::steps() };
    let next = Record { state: State::Released(released), attempts_forgiven, ..record.clone() };
    written(next, moment, Keep::For(record.retention))
}

/// A run that was granted before ends: its fence stays.
pub(super) fn run_done(record: &Record, outcome: &Outcome, moment: Moment) -> Expected {
    done(record, MINE, FENCE, outcome, moment)
}

/// No run had this fence: the write that settles is the one that grants.
pub(super) fn done_at_once(
    record: &Record,
    permit_id: PermitId,
    outcome: &Outcome,
    moment: Moment,
) -> Expected {
    done(record, permit_id, NEXT_VERSION, outcome, moment)
}

fn done(record: &Record, permit_id: PermitId, fence: Version, outcome: &Outcome, moment: Moment) -> Expected {
    let done = Done { permit_id, fence, settled_at: stamped_at(moment), outcome: outcome.clone() };
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
    let moments = match &mut record.state {
        State::Running(running) => vec![&mut running.grant.granted_at, &mut running.leased_at],
        State::Done(done) => vec![&mut done.settled_at],
        State::Released(released) => vec![&mut released.settled_at],
        State::Held(held) => vec![&mut held.held_at],
    };
    for open in moments.into_iter().chain([&mut record.first_seen_at]).filter(|moment| **moment == OPEN) {
        *open = stamped_at(moment);
    }
    match &mut record.state {
        State::Running(Running { fence, .. }) | State::Done(Done { fence, .. }) if fence.get() == 0 => {
            *fence = NEXT_VERSION;
        }
        State::Running(_) | State::Done(_) | State::Released(_) | State::Held(_) => {}
    }
    Record { changed_at: stamped_at(moment), version: NEXT_VERSION, ..record }
}
