//! What a client is told when its request neither runs nor replays.

use std::time::Duration;

use semel::record::State;
use semel::{Busy, Error, ErrorKind};

use crate::problem::{Code, Problem};

/// When to come back to what may be there again any moment.
pub(crate) const SOON: Duration = Duration::from_secs(1);

pub(crate) fn in_flight(busy: &Busy) -> Problem {
    let left = busy.retry_after();
    Problem::new(Code::InFlight, "The first request with this key still runs. Ask again with the same key.")
        .retry_after(worth_a_retry(busy))
        .member("lease_left_ms", u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
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

pub(crate) fn overloaded() -> Problem {
    Problem::new(Code::Overloaded, "There is no room for this now. Nothing ran.").retry_after(SOON)
}

pub(crate) fn mismatch() -> Problem {
    Problem::new(
        Code::Mismatch,
        "This key was used for another request. Use a new key for a new request, or send the first one unchanged.",
    )
}

pub(crate) fn held() -> Problem {
    Problem::new(
        Code::OutcomeHeld,
        "A run was started and nobody knows how it ended. It is held until somebody has looked; nothing runs meanwhile.",
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
