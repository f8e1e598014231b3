//! A record's parts, in the order in which they are read back.

use std::time::Duration;

use super::layout::{end, flag, hold, kind, note, tag};
use crate::clock::{Timestamp, micros};
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::Lapse;
use crate::record::{AttemptEnd, EndedAttempt, Grant, HoldReason, Record, State, Step};

pub(super) fn payload(out: &mut Vec<u8>, record: &Record) {
    bytes(out, record.key.text().as_bytes());
    out.push(flags(record));
    if let Some(fingerprint) = &record.fingerprint {
        out.extend_from_slice(fingerprint.as_bytes());
    }
    if let Some(label) = &record.label {
        bytes(out, label.as_bytes());
    }
    number(out, u64::from(record.attempt));
    number(out, u64::from(record.attempts_forgiven));
    past_attempts(out, &record.past_attempts);
    span(out, record.retention);
    moment(out, record.first_seen_at);
    moment(out, record.changed_at);
    if let Some(event) = &record.first_event {
        bytes(out, event.as_bytes());
    }
    number(out, record.mismatches.count);
    number(out, record.mismatches.fingerprints.len() as u64);
    for fingerprint in &record.mismatches.fingerprints {
        out.extend_from_slice(fingerprint.as_bytes());
    }
    number(out, record.duplicates.count);
    if let Some(last_seen_at) = record.duplicates.last_seen_at {
        moment(out, last_seen_at);
    }
    number(out, record.version.get());
    state(out, &record.state);
}

fn flags(record: &Record) -> u8 {
    flags_of([
        (flag::FINGERPRINT, record.fingerprint.is_some()),
        (flag::FIRST_EVENT, record.first_event.is_some()),
        (flag::LAST_SEEN_AT, record.duplicates.last_seen_at.is_some()),
        (flag::LAPSE_HOLD, record.lapse == Lapse::Hold),
        (flag::LABEL, record.label.is_some()),
        (flag::PAST_ATTEMPTS, !record.past_attempts.is_empty()),
    ])
}

/// The flags of the parts that are present. Each has a bit of its own, so their sum is their union.
fn flags_of(parts: impl IntoIterator<Item = (u8, bool)>) -> u8 {
    parts.into_iter().filter(|(_, present)| *present).map(|(flag, _)| flag).sum()
}

fn past_attempts(out: &mut Vec<u8>, past: &[EndedAttempt]) {
    if past.is_empty() {
        return;
    }
    number(out, past.len() as u64);
    for attempt in past {
        number(out, u64::from(attempt.number));
        bytes(out, attempt.owner.as_bytes());
        moment(out, attempt.from);
        moment(out, attempt.until);
        out.push(match attempt.end {
            AttemptEnd::Completed => end::COMPLETED,
            AttemptEnd::Released => end::RELEASED,
            AttemptEnd::Lapsed => end::LAPSED,
            AttemptEnd::Held => end::HELD,
        });
        bytes(out, attempt.reason.as_bytes());
    }
}

fn grant(out: &mut Vec<u8>, grant: &Grant) {
    out.extend_from_slice(&grant.permit_id.get().to_le_bytes());
    bytes(out, grant.owner.as_bytes());
    number(out, grant.fence.get());
    moment(out, grant.granted_at);
}

fn state(out: &mut Vec<u8>, state: &State) {
    match state {
        State::Running(running) => {
            out.push(tag::RUNNING);
            grant(out, &running.grant);
            moment(out, running.leased_at);
            span(out, running.lease);
            steps(out, &running.steps);
        }
        State::Done(done) => {
            out.push(tag::DONE);
            grant(out, &done.grant);
            moment(out, done.settled_at);
            outcome(out, &done.outcome);
        }
        State::Released(released) => {
            out.push(tag::RELEASED);
            grant(out, &released.grant);
            moment(out, released.settled_at);
            bytes(out, released.reason.as_bytes());
            steps(out, &released.steps);
        }
        State::Held(held) => {
            out.push(tag::HELD);
            grant(out, &held.grant);
            moment(out, held.held_at);
            match &held.reason {
                HoldReason::Lapsed => out.push(hold::LAPSED),
                HoldReason::Attempts => out.push(hold::ATTEMPTS),
                HoldReason::Unknown(reason) => {
                    out.push(hold::UNKNOWN);
                    bytes(out, reason.as_bytes());
                }
            }
            // No clock reads 0, so 0 is "never".
            moment(out, held.probed_at.unwrap_or_default());
            steps(out, &held.steps);
        }
    }
}

fn outcome(out: &mut Vec<u8>, outcome: &Outcome) {
    match outcome.kind() {
        OutcomeKind::Success => out.push(kind::SUCCESS),
        OutcomeKind::Failure => out.push(kind::FAILURE),
        OutcomeKind::Other(word) => {
            out.push(kind::OTHER);
            bytes(out, word.as_bytes());
        }
    }
    let (references, details) = (outcome.references(), outcome.details_json());
    out.push(flags_of([(note::DETAILS, details.is_some()), (note::REFERENCES, !references.is_empty())]));
    if let Some(details) = details {
        bytes(out, details.as_bytes());
    }
    if !references.is_empty() {
        number(out, references.len() as u64);
        for reference in references {
            bytes(out, reference.kind.as_bytes());
            bytes(out, reference.id.as_bytes());
        }
    }
    bytes(out, outcome.bytes());
}

fn steps(out: &mut Vec<u8>, steps: &[Step]) {
    number(out, steps.len() as u64);
    for step in steps {
        bytes(out, step.name.as_bytes());
        bytes(out, &step.value);
    }
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn moment(out: &mut Vec<u8>, moment: Timestamp) {
    out.extend_from_slice(&moment.as_micros().to_le_bytes());
}

fn span(out: &mut Vec<u8>, span: Duration) {
    out.extend_from_slice(&micros(span).to_le_bytes());
}

/// LEB128: seven bits a byte, lowest first, the top bit says that more follow.
fn number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}
