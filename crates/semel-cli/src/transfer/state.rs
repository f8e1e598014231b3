//! The part of a line that depends on the record's state.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::clock::Timestamp;
use semel::record::{Done, Held, PermitId, Released, Running, State, Step, Version};
use semel::{Outcome, OutcomeKind};
use serde::{Deserialize, Serialize};

use super::line::micros;

/// A state and everything that belongs to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum StateLine {
    Running {
        permit_id: String,
        owner: String,
        fence: u64,
        granted_at_us: u64,
        leased_at_us: u64,
        lease_us: u64,
        steps: Vec<StepLine>,
    },
    Done {
        permit_id: String,
        fence: u64,
        settled_at_us: u64,
        outcome: OutcomeLine,
    },
    Released {
        settled_at_us: u64,
        reason: String,
        steps: Vec<StepLine>,
    },
    Held {
        held_at_us: u64,
        reason: String,
        steps: Vec<StepLine>,
    },
}

/// What a run produced.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeLine {
    kind: String,
    base64: String,
    primary: Option<String>,
    secondary: Option<String>,
    /// JSON text, exactly as it was given.
    details: Option<String>,
}

/// The value of a finished step.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepLine {
    name: String,
    base64: String,
}

impl StateLine {
    pub(super) fn of(state: &State) -> Self {
        match state {
            State::Running(running) => Self::Running {
                permit_id: permit_text(running.permit_id),
                owner: running.owner.to_string(),
                fence: running.fence.get(),
                granted_at_us: running.granted_at.as_micros(),
                leased_at_us: running.leased_at.as_micros(),
                lease_us: micros(running.lease),
                steps: steps(&running.steps),
            },
            State::Done(done) => Self::Done {
                permit_id: permit_text(done.permit_id),
                fence: done.fence.get(),
                settled_at_us: done.settled_at.as_micros(),
                outcome: OutcomeLine::of(&done.outcome),
            },
            State::Released(released) => Self::Released {
                settled_at_us: released.settled_at.as_micros(),
                reason: released.reason.to_string(),
                steps: steps(&released.steps),
            },
            State::Held(held) => Self::Held {
                held_at_us: held.held_at.as_micros(),
                reason: held.reason.to_string(),
                steps: steps(&held.steps),
            },
        }
    }

    pub(super) fn state(self) -> Result<State, String> {
        Ok(match self {
            Self::Running { permit_id, owner, fence, granted_at_us, leased_at_us, lease_us, steps } => {
                State::Running(Running {
                    permit_id: permit(&permit_id)?,
                    owner: owner.into(),
                    fence: Version::new(fence),
                    granted_at: moment(granted_at_us)?,
                    leased_at: moment(leased_at_us)?,
                    lease: Duration::from_micros(lease_us),
                    steps: read_steps(steps)?,
                })
            }
            Self::Done { permit_id, fence, settled_at_us, outcome } => State::Done(Done {
                permit_id: permit(&permit_id)?,
                fence: Version::new(fence),
                settled_at: moment(settled_at_us)?,
                outcome: outcome.outcome()?,
            }),
            Self::Released { settled_at_us, reason, steps } => State::Released(Released {
                settled_at: moment(settled_at_us)?,
                reason: reason.into(),
                steps: read_steps(steps)?,
            }),
            Self::Held { held_at_us, reason, steps } => State::Held(Held {
                held_at: moment(held_at_us)?,
                reason: reason.into(),
                steps: read_steps(steps)?,
            }),
        })
    }
}

impl OutcomeLine {
    fn of(outcome: &Outcome) -> Self {
        Self {
            kind: outcome.kind().as_str().to_owned(),
            base64: STANDARD.encode(outcome.bytes()),
            primary: outcome.primary().map(str::to_owned),
            secondary: outcome.secondary().map(str::to_owned),
            details: outcome.details_json().map(str::to_owned),
        }
    }

    fn outcome(self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new(OutcomeKind::from_word(&self.kind), bytes(&self.base64)?);
        if let Some(primary) = self.primary {
            outcome = outcome.primary_reference(primary);
        }
        if let Some(secondary) = self.secondary {
            outcome = outcome.secondary_reference(secondary);
        }
        if let Some(details) = self.details {
            outcome = outcome.details_text(&details);
        }
        Ok(outcome)
    }
}

fn steps(steps: &[Step]) -> Vec<StepLine> {
    let line = |step: &Step| StepLine { name: step.name.to_string(), base64: STANDARD.encode(&step.value) };
    steps.iter().map(line).collect()
}

fn read_steps(steps: Vec<StepLine>) -> Result<Vec<Step>, String> {
    let read = |step: StepLine| Ok(Step { name: step.name.into(), value: bytes(&step.base64)?.into() });
    steps.into_iter().map(read).collect()
}

fn bytes(base64: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(base64).map_err(|error| format!("bytes are no base64: {error}"))
}

fn permit_text(permit_id: PermitId) -> String {
    format!("{:032x}", permit_id.get())
}

fn permit(text: &str) -> Result<PermitId, String> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    number.map(PermitId::new).ok_or_else(|| "a permit id is not 32 hex digits".to_owned())
}

/// A moment that a store has stamped: 0 would be stamped anew.
pub(super) fn moment(micros: u64) -> Result<Timestamp, String> {
    if micros == 0 {
        return Err("a moment is 0, which no store has ever stamped".to_owned());
    }
    Ok(Timestamp::from_micros(micros))
}
