//! Lines of version 1, as release 0.1 wrote them: without label and history, with two references that have no kind.

use semel::clock::Timestamp;
use semel::record::{Grant, HoldReason};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{
    DuplicatesLine, GrantLine, HoldLine, Lapse, LapseLine, Line, MismatchesLine, OutcomeLine, ReferenceLine,
    StateLine, StepLine, checked,
};

/// A record. The order of its members is part of the format: the sum is over them in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line1 {
    id: String,
    scope: Vec<String>,
    operation: String,
    name: String,
    fingerprint: Option<String>,
    state: State1,
    attempt: u32,
    pardoned: u32,
    #[serde(with = "LapseLine")]
    lapse: Lapse,
    retention_us: u64,
    first_seen_at_us: u64,
    changed_at_us: u64,
    first_event: Option<String>,
    mismatches: MismatchesLine,
    duplicates: DuplicatesLine,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum State1 {
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
        outcome: Outcome1,
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome1 {
    kind: String,
    base64: String,
    primary: Option<String>,
    secondary: Option<String>,
    details: Option<String>,
}

/// Whether a line is of version 1: only those have this member.
pub(super) fn is_one(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        pardoned: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Peek>(text).is_ok_and(|peek| peek.pardoned.is_some())
}

/// The line as one of the present version.
pub(super) fn read(text: &[u8]) -> Result<Line, String> {
    let mut line: Line1 = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let said = line.crc.take();
    checked(said, &line)?;
    Ok(Line {
        id: line.id,
        scope: line.scope,
        operation: line.operation,
        name: line.name,
        fingerprint: line.fingerprint,
        label: None,
        state: line.state.now(),
        attempt: line.attempt,
        attempts_forgiven: line.pardoned,
        past_attempts: Vec::new(),
        lapse: line.lapse,
        retention_us: line.retention_us,
        first_seen_at_us: line.first_seen_at_us,
        changed_at_us: line.changed_at_us,
        first_event: line.first_event,
        mismatches: line.mismatches,
        duplicates: line.duplicates,
        version: line.version,
        crc: None,
    })
}

impl State1 {
    fn now(self) -> StateLine {
        match self {
            Self::Running { permit_id, owner, fence, granted_at_us, leased_at_us, lease_us, steps } => {
                let grant = GrantLine { permit_id, owner, fence, granted_at_us };
                StateLine::Running { grant, leased_at_us, lease_us, steps }
            }
            Self::Done { permit_id, fence, settled_at_us, outcome } => {
                let grant = GrantLine { permit_id, fence, ..forgotten(settled_at_us) };
                StateLine::Done { grant, settled_at_us, outcome: outcome.now() }
            }
            Self::Released { settled_at_us, reason, steps } => {
                StateLine::Released { grant: forgotten(settled_at_us), settled_at_us, reason, steps }
            }
            Self::Held { held_at_us, reason, steps } => {
                let reason = HoldLine::of(&HoldReason::from_text(&reason));
                StateLine::Held {
                    grant: forgotten(held_at_us),
                    held_at_us,
                    reason,
                    probed_at_us: None,
                    steps,
                }
            }
        }
    }
}

fn forgotten(settled_at_us: u64) -> GrantLine {
    GrantLine::of(&Grant::forgotten(Timestamp::from_micros(settled_at_us)))
}

impl Outcome1 {
    fn now(self) -> OutcomeLine {
        let reference =
            |kind: &str, id: Option<String>| id.map(|id| ReferenceLine { kind: kind.to_owned(), id });
        let references = [reference("primary", self.primary), reference("secondary", self.secondary)]
            .into_iter()
            .flatten();
        OutcomeLine {
            kind: self.kind,
            base64: self.base64,
            references: references.collect(),
            details: self.details,
        }
    }
}
