//! A record without what is secret in it: what is in its outcome and its steps, its permit ids and its fingerprints. Everything
//! that lists and counts show stays, sizes included.

use http::header::CONTENT_TYPE;
use semel::machine::offset;
use semel::record::{PermitId, Record, State, Step};
use semel::{Fingerprint, Outcome};
use semel_http::{HttpRecord, Reply, StoredResponse};

const NO_PERMIT: PermitId = PermitId::new(0);
const NO_FINGERPRINT: Fingerprint = Fingerprint::from_bytes([0; 32]);

/// The record, for whoever may list it and not see what is in it.
pub(super) fn blanked(record: &Record) -> Record {
    let outcome = record.outcome().map(|outcome| blank_outcome(record, outcome));
    let mut record = record.clone();
    record.fingerprint = record.fingerprint.map(|_| NO_FINGERPRINT);
    record.mismatches.fingerprints.fill(NO_FINGERPRINT);
    match &mut record.state {
        State::Running(running) => {
            running.grant.permit_id = NO_PERMIT;
            blank_steps(&mut running.steps);
        }
        State::Released(released) => {
            released.grant.permit_id = NO_PERMIT;
            blank_steps(&mut released.steps);
        }
        State::Held(held) => {
            held.grant.permit_id = NO_PERMIT;
            blank_steps(&mut held.steps);
        }
        State::Done(done) => {
            done.grant.permit_id = NO_PERMIT;
            done.outcome = outcome.unwrap_or_else(|| done.outcome.clone());
        }
    }
    record
}

fn blank_steps(steps: &mut [Step]) {
    for step in steps {
        step.value = zeros(step.value.len()).into();
    }
}

/// The outcome with zeros for its bytes. How far a stream was read stays, and of a response its status, its media type and the size
/// of its body: lists show these.
fn blank_outcome(record: &Record, outcome: &Outcome) -> Outcome {
    if offset::read(record).is_some() {
        return outcome.clone();
    }
    let bytes = HttpRecord::of(record).and_then(|http| http.response()?.ok()).and_then(blank_response);
    let bytes = bytes.unwrap_or_else(|| zeros(outcome.bytes().len()).into());
    let mut blank = Outcome::new(outcome.kind().clone(), bytes);
    for reference in outcome.references() {
        blank = blank.reference(&*reference.kind, &*reference.id);
    }
    match outcome.details_json() {
        Some(details) => blank.details_text(details),
        None => blank,
    }
}

fn blank_response(response: StoredResponse) -> Option<bytes::Bytes> {
    let StoredResponse::Whole(reply) = response else { return None };
    let mut blank = Reply::new(reply.status(), zeros(reply.body().len()));
    if let Some(media_type) = reply.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        blank = blank.header(CONTENT_TYPE.as_str(), media_type).ok()?;
    }
    Some(blank.outcome().bytes().clone())
}

fn zeros(count: usize) -> Vec<u8> {
    vec![0; count]
}
