//! A record in words.

use semel::Lapse;
use semel::clock::Timestamp;
use semel::record::{Record, State};

/// Since when the record is in its state.
pub fn since(record: &Record) -> Timestamp {
    match &record.state {
        State::Running(running) => running.granted_at,
        State::Done(done) => done.settled_at,
        State::Released(released) => released.settled_at,
        State::Held(held) => held.held_at,
    }
}

/// Who runs it, or why it is as it is.
pub fn who_or_why(record: &Record) -> &str {
    match &record.state {
        State::Running(running) => &running.owner,
        State::Done(done) => done.outcome.kind().as_str(),
        State::Released(released) => &released.reason,
        State::Held(held) => &held.reason,
    }
}

/// The word for a lapse policy, wherever it is shown.
pub fn lapse(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun",
        Lapse::Hold => "hold",
    }
}
