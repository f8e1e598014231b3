//! Release and resolve, on any store: just what was shown is settled, and nothing that took its place.

use std::time::Duration;

use rand::random;
use semel::clock::Timestamp;
use semel::machine::Write;
use semel::machine::settle::{self, Proof, ReleaseAnswer};
use semel::record::{PermitId, Record, State};
use semel::store::{Answer, Store, Swap, SwapReply};
use semel::{Error, ErrorKind, Resolution, Resolved, Result};
use serde::Serialize;

/// How often an action is tried again because somebody else wrote meanwhile.
const TRIES_MAX: u32 = 16;
/// How long to wait after a lost reply, for each try so far.
const PAUSE: Duration = Duration::from_millis(10);

/// What became of an operator's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = OperatorAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Settled {
    /// The next claim runs.
    Released,
    /// The record is settled as was said.
    Resolved,
    /// There is nothing to settle: it is done, released, or (to resolve) still running. Nothing was changed.
    NotHeld,
    /// The record is no longer what was shown. Nothing was changed: look again.
    Changed,
}

impl Settled {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Released, Self::Resolved, Self::NotHeld, Self::Changed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Resolved => "resolved",
            Self::NotHeld => "not_held",
            Self::Changed => "changed",
        }
    }
}

/// Has the next claim run: takes the run that was shown away from whoever has it, or lets the held record run again. With
/// a version, only if the record is still at it, or it is still the run with that fence.
pub async fn release_in(
    store: &dyn Store,
    shown: &Record,
    reason: &str,
    version: Option<u64>,
) -> Result<Settled> {
    match &shown.state {
        State::Running(running) => {
            let proof = Proof { permit_id: running.grant.permit_id, fence: Some(running.grant.fence) };
            act(store, shown, &Act::Release { proof, reason }, version).await
        }
        State::Held(_) => {
            let resolution = Resolution::Release { reason: reason.into() };
            let settled = resolve_in(store, shown, &resolution, version).await?;
            Ok(if settled == Settled::Resolved { Settled::Released } else { settled })
        }
        State::Done(_) | State::Released(_) => Ok(Settled::NotHeld),
    }
}

/// Settles a held record: done with an outcome, or released. With a version, only if the record is still at it.
pub async fn resolve_in(
    store: &dyn Store,
    shown: &Record,
    resolution: &Resolution,
    version: Option<u64>,
) -> Result<Settled> {
    let permit_id = PermitId::new(random());
    act(store, shown, &Act::Resolve { permit_id, resolution }, version).await
}

/// What is to be done.
enum Act<'a> {
    Release { proof: Proof, reason: &'a str },
    Resolve { permit_id: PermitId, resolution: &'a Resolution },
}

/// What the machine says to it.
enum Ruled {
    Write(Write),
    /// An earlier try took.
    Took,
    Refused,
}

async fn act(store: &dyn Store, shown: &Record, act: &Act<'_>, version: Option<u64>) -> Result<Settled> {
    let mut doubt = None;
    for tries in 0..TRIES_MAX {
        let (found, now) = match look(store, shown).await {
            Ok(looked) => looked,
            Err(error) => return Err(doubt.unwrap_or(error)),
        };
        let is_at_version =
            version.is_none_or(|version| found.as_ref().is_some_and(|found| is_at(found, version)));
        let write = match act.ruled(found.as_ref(), shown, now, doubt.is_some()) {
            Ruled::Took => return Ok(act.settled()),
            _ if !is_at_version => return Ok(Settled::Changed),
            Ruled::Refused => return Ok(act.refused()),
            Ruled::Write(write) => write,
        };
        let expected = found.map(|record| record.version);
        match store.swap([Swap { expected, next: write.next, keep: write.keep }].into()).await {
            Ok(answer) => {
                if let Some(SwapReply::Swapped(_)) = answer.value.first() {
                    return Ok(act.settled());
                }
            }
            // The next look tells whether it took.
            Err(error) if error.kind() == ErrorKind::Unknown => {
                doubt = Some(error);
                tokio::time::sleep(PAUSE.saturating_mul(tries)).await;
            }
            Err(error) => return Err(doubt.unwrap_or(error)),
        }
    }
    Err(doubt.unwrap_or_else(|| {
        Error::new(ErrorKind::Unavailable, "the run kept writing first; look at it again, then try again")
    }))
}

/// Whether the record is still what was shown. A run that renewed its lease meanwhile is the same run, and known by its fence.
fn is_at(record: &Record, version: u64) -> bool {
    record.version.get() == version
        || matches!(&record.state, State::Running(running) if running.grant.fence.get() == version)
}

async fn look(store: &dyn Store, shown: &Record) -> Result<(Option<Record>, Timestamp)> {
    let Answer { now, value } = store.load(vec![shown.key.id()]).await?;
    Ok((value.into_iter().next().flatten().filter(|record| record.key == shown.key), now))
}

impl Act<'_> {
    fn ruled(&self, found: Option<&Record>, shown: &Record, now: Timestamp, is_in_doubt: bool) -> Ruled {
        let (is_settled, write) = match self {
            Self::Release { proof, reason } => {
                let ruling = settle::release(found, *proof, reason, now);
                (ruling.answer == ReleaseAnswer::Released, ruling.write)
            }
            Self::Resolve { permit_id, resolution } => {
                let ruling = settle::resolve(found, *permit_id, resolution, now);
                (ruling.answer == Resolved::Resolved, ruling.write)
            }
        };
        match write {
            Some(write) if is_settled => Ruled::Write(write),
            None if is_settled => Ruled::Took,
            _ if is_in_doubt && found.is_some_and(|found| self.is_released_by(found, shown)) => Ruled::Took,
            _ => Ruled::Refused,
        }
    }

    /// Whether an earlier try of this release took, and its reply was lost.
    fn is_released_by(&self, found: &Record, shown: &Record) -> bool {
        let reason = match self {
            Self::Release { reason, .. } => *reason,
            Self::Resolve { resolution: Resolution::Release { reason }, .. } => reason,
            Self::Resolve { resolution: Resolution::Done(_), .. } => return false,
        };
        let State::Released(released) = &found.state else { return false };
        found.attempt == shown.attempt
            && *released.reason == *reason
            && released.settled_at >= shown.changed_at
    }

    fn settled(&self) -> Settled {
        match self {
            Self::Release { .. } => Settled::Released,
            Self::Resolve { .. } => Settled::Resolved,
        }
    }

    /// What was shown as running is another run's by now; what was shown as held is not held.
    fn refused(&self) -> Settled {
        match self {
            Self::Release { .. } => Settled::Changed,
            Self::Resolve { .. } => Settled::NotHeld,
        }
    }
}
