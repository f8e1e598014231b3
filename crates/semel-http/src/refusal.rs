//! What a client is told when its request neither runs nor replays.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, response};
use semel::machine::claim::PROBE_PAUSE;
use semel::record::{HoldReason, State};
use semel::{Busy, Error, ErrorKind, Held, Lapse};

use crate::budget::NoRoom;
use crate::decided::Decided;
use crate::problem::{Code, Problem, whole_seconds};
use crate::profile::Rules;

/// When to come back to what may be there again any moment.
pub(crate) const SOON: Duration = Duration::from_secs(1);

pub(crate) fn in_flight(busy: &Busy) -> Problem {
    let left = busy.retry_after();
    let problem = if busy.outcome_is_unknown() {
        let then = match busy.record().lapse {
            Lapse::Rerun => "a request with this key runs again",
            Lapse::Hold => "this key is held for review, and nothing runs",
        };
        let detail = format!(
            "The first request with this key was sent, and its outcome is not known. Its lease ends in {} s; then {then}.",
            whole_seconds(left),
        );
        // Until then, no retry can hear anything else.
        Problem::new(Code::InFlight, detail).retry_after(left).member("outcome", "unknown")
    } else {
        let detail = "The first request with this key still runs. Ask again with the same key.";
        Problem::new(Code::InFlight, detail).retry_after(worth_a_retry(busy))
    };
    problem.member("lease_left_ms", u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
}

/// The first answer to a request whose outcome is not known. Before the lease ends, a retry can hear nothing new.
pub(crate) fn outcome_unknown(why: &str, lease_left: Duration) -> Problem {
    let detail = format!(
        "{why} Its outcome is not known. Send it again with the same key after {} s.",
        whole_seconds(lease_left)
    );
    Problem::new(Code::OutcomeUnknown, detail).retry_after(lease_left)
}

/// Adds when a retry is worth it to an `outcome_unknown` that was made behind the layer, where the lease is not known.
pub(crate) fn add_lease_left(parts: &mut response::Parts, lease_left: Duration) {
    let code = parts.extensions.get::<Decided>().and_then(|decided| decided.code);
    if code == Some(Code::OutcomeUnknown) {
        parts.headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(lease_left)));
    }
}

/// As long again as it has run, but not beyond the end of its lease: most runs end soon, and one that hangs is not asked
/// for every second.
fn worth_a_retry(busy: &Busy) -> Duration {
    let left = busy.retry_after();
    let has_run = match &busy.record().state {
        State::Running(running) => {
            let until = running.leased_at.plus(running.lease);
            until.since(busy.since()).saturating_sub(left)
        }
        State::Done(_) | State::Released(_) | State::Held(_) => Duration::ZERO,
    };
    has_run.min(left)
}

pub(crate) fn overloaded(full: NoRoom) -> Problem {
    let detail = match full {
        NoRoom::InAll => {
            "There is no room in memory for this now. Nothing ran. Send it again with the same key."
        }
        NoRoom::ForCaller => {
            "Requests and unread responses of this caller fill its share of the memory. Nothing ran. Read the responses, \
             then send it again with the same key."
        }
    };
    Problem::new(Code::Overloaded, detail).retry_after(SOON)
}

pub(crate) fn mismatch() -> Problem {
    Problem::new(
        Code::Mismatch,
        "This key was used for another request. Use a new key for a new request, or send the first one unchanged.",
    )
}

/// With a probe, a retry may find out more once the probe may be asked again: after its pause, or at once if it was not asked
/// because too many were.
pub(crate) fn held(held: &Held, rules: &Rules) -> Problem {
    let problem = held_for_review();
    match &held.record().state {
        State::Held(state) if rules.probe.is_some() && state.reason != HoldReason::Attempts => {
            problem.retry_after(if state.probed_at.is_some() { PROBE_PAUSE } else { SOON })
        }
        State::Held(_) | State::Running(_) | State::Done(_) | State::Released(_) => problem,
    }
}

fn held_for_review() -> Problem {
    Problem::new(
        Code::OutcomeHeld,
        "A run was started and its end is not known. The key is held until an operator decides; nothing runs meanwhile.",
    )
}

pub(crate) fn store_unavailable(error: &Error) -> Problem {
    let kind = error.kind();
    let detail = if matches!(kind, ErrorKind::Corrupt | ErrorKind::Newer) {
        "The record of this key cannot be read. Nothing ran, and nothing was overwritten."
    } else if kind == ErrorKind::Full {
        "There is no room for new keys now. Nothing ran."
    } else {
        "Whether this ran before cannot be told now, so nothing ran. Ask again with the same key."
    };
    tracing::warn!(%error, "semel: refused, because the store did not decide");
    Problem::new(Code::StoreUnavailable, detail).retry_after(SOON)
}
