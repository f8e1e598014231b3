//! The lines of an export: its first and its last, and one for each record, lossless, with a sum that tells whether it was
//! changed.

use std::fmt::Write;
use std::time::Duration;

use anyhow::bail;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::clock::Timestamp;
use semel::record::{
    Done, Duplicates, Held, MISMATCHED_FINGERPRINTS_MAX, Mismatches, PermitId, Record, Released, Running,
    State, Step, Version,
};
use semel::{Fingerprint, Key, Lapse, Outcome, OutcomeKind};
use semel_ops::record_json::read_hex;
use serde::{Deserialize, Serialize};

/// What the first line says, so that nothing else is taken for an export.
const FORMAT: &str = "semel-export";
/// The version of the lines that this release writes, and the newest that it reads.
const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    /// Where the records come from; for people.
    from: String,
    /// The store's now; for people.
    exported_at: String,
    /// Only ids behind this one are in it.
    after: Option<String>,
}

/// The last line: without it, an export was cut.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct End {
    end: Counts,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Counts {
    records: u64,
}

impl Header {
    pub(super) fn new(from: String, exported_at: String, after: Option<String>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, from, exported_at, after }
    }

    /// The header, if it is one that this release can read.
    pub(super) fn parse(line: &[u8]) -> anyhow::Result<Self> {
        /// What every version has, whatever else it may have.
        #[derive(Deserialize)]
        struct Any {
            format: String,
            version: u32,
        }
        let Ok(Any { format, version }) = serde_json::from_slice(line) else {
            bail!("the first line is no header of an export; was this made by `semel export`?");
        };
        if format != FORMAT {
            bail!("the first line says that this is `{format}`, and no export of semel");
        }
        if version > VERSION {
            bail!(
                "this export has version {version}, and this release reads up to {VERSION}; nothing was changed: upgrade \
                 semel, then import it"
            );
        }
        match serde_json::from_slice(line) {
            Ok(header) => Ok(header),
            Err(error) => bail!("the first line is damaged: {error}"),
        }
    }
}

impl End {
    pub(super) fn new(records: u64) -> Self {
        Self { end: Counts { records } }
    }

    /// The end, if this line is one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        // A record's line begins with its id: most need no second look.
        line.starts_with(b"{\"end\"").then(|| serde_json::from_slice(line).ok()).flatten()
    }

    pub(super) fn records(self) -> u64 {
        self.end.records
    }
}

/// A record. The order of its members is part of the format: the sum is over them in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    scope: Vec<String>,
    operation: String,
    name: String,
    fingerprint: Option<String>,
    state: StateLine,
    attempt: u32,
    attempts_forgiven: u32,
    #[serde(with = "LapseLine")]
    lapse: Lapse,
    retention_us: u64,
    first_seen_at_us: u64,
    changed_at_us: u64,
    first_event: Option<String>,
    mismatches: MismatchesLine,
    duplicates: DuplicatesLine,
    version: u64,
    /// CRC-32C of the line without it, in hex. Whoever edits a line takes it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    crc: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Lapse", rename_all = "lowercase")]
enum LapseLine {
    Rerun,
    Hold,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MismatchesLine {
    count: u64,
    fingerprints: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DuplicatesLine {
    count: u64,
    last_seen_at_us: Option<u64>,
}

/// The line of a record, without its line break.
pub(super) fn write(record: &Record) -> serde_json::Result<Vec<u8>> {
    let mut line = Line::of(record);
    line.crc = Some(sum(&line)?);
    serde_json::to_vec(&line)
}

/// The record of a line, or what is wrong with it.
pub(super) fn read(text: &[u8]) -> Result<Record, String> {
    let mut line: Line = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if let Some(said) = line.crc.take() {
        let found = sum(&line).map_err(|error| error.to_string())?;
        if said != found {
            return Err(format!(
                "does not match its crc ({said} is said, {found} was found): it was changed"
            ));
        }
    }
    line.record()
}

fn sum(line: &Line) -> serde_json::Result<String> {
    Ok(format!("{:08x}", crc32c::crc32c(&serde_json::to_vec(line)?)))
}

impl Line {
    fn of(record: &Record) -> Self {
        let key = &record.key;
        Self {
            id: key.id().to_string(),
            scope: key.scope().map(str::to_owned).collect(),
            operation: key.operation().to_owned(),
            name: key.name().to_owned(),
            fingerprint: record.fingerprint.map(fingerprint_text),
            state: StateLine::of(&record.state),
            attempt: record.attempt,
            attempts_forgiven: record.attempts_forgiven,
            lapse: record.lapse,
            retention_us: micros(record.retention),
            first_seen_at_us: record.first_seen_at.as_micros(),
            changed_at_us: record.changed_at.as_micros(),
            first_event: record.first_event.as_deref().map(str::to_owned),
            mismatches: MismatchesLine {
                count: record.mismatches.count,
                fingerprints: record.mismatches.fingerprints.iter().copied().map(fingerprint_text).collect(),
            },
            duplicates: DuplicatesLine {
                count: record.duplicates.count,
                last_seen_at_us: record.duplicates.last_seen_at.map(Timestamp::as_micros),
            },
            version: record.version.get(),
            crc: None,
        }
    }

    fn record(self) -> Result<Record, String> {
        let key = Key::scoped(&self.scope, &self.operation, &self.name).map_err(|error| error.to_string())?;
        if key.id().to_string() != self.id {
            return Err("its id is not the one of its scope, operation and name".to_owned());
        }
        if self.mismatches.fingerprints.len() > MISMATCHED_FINGERPRINTS_MAX {
            return Err(format!("more than {MISMATCHED_FINGERPRINTS_MAX} mismatched fingerprints"));
        }
        Ok(Record {
            key,
            fingerprint: self.fingerprint.as_deref().map(fingerprint).transpose()?,
            state: self.state.state()?,
            attempt: self.attempt,
            attempts_forgiven: self.attempts_forgiven,
            lapse: self.lapse,
            retention: Duration::from_micros(self.retention_us),
            first_seen_at: moment(self.first_seen_at_us)?,
            changed_at: Timestamp::from_micros(self.changed_at_us),
            first_event: self.first_event.map(Into::into),
            mismatches: Mismatches {
                count: self.mismatches.count,
                fingerprints: self
                    .mismatches
                    .fingerprints
                    .iter()
                    .map(|text| fingerprint(text))
                    .collect::<Result<_, _>>()?,
            },
            duplicates: Duplicates {
                count: self.duplicates.count,
                last_seen_at: self.duplicates.last_seen_at_us.map(Timestamp::from_micros),
            },
            version: Version::new(self.version),
        })
    }
}

/// A span in whole microseconds, as every store keeps it.
fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn fingerprint_text(fingerprint: Fingerprint) -> String {
    fingerprint.as_bytes().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    let bytes = read_hex(text).ok_or_else(|| "a fingerprint is not 64 hex digits".to_owned())?;
    Ok(Fingerprint::from_bytes(bytes))
}

/// A state and everything that belongs to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum StateLine {
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
struct OutcomeLine {
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
struct StepLine {
    name: String,
    base64: String,
}

impl StateLine {
    fn of(state: &State) -> Self {
        match state {
            State::Running(running) => Self::Running {
                permit_id: permit_text(running.grant.permit_id),
                owner: running.grant.owner.to_string(),
                fence: running.grant.fence.get(),
                granted_at_us: running.grant.granted_at.as_micros(),
                leased_at_us: running.leased_at.as_micros(),
                lease_us: micros(running.lease),
                steps: steps(&running.steps),
            },
            State::Done(done) => Self::Done {
                permit_id: permit_text(done.grant.permit_id),
                fence: done.grant.fence.get(),
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

    fn state(self) -> Result<State, String> {
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
fn moment(micros: u64) -> Result<Timestamp, String> {
    if micros == 0 {
        return Err("a moment is 0, which no store has ever stamped".to_owned());
    }
    Ok(Timestamp::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_is_refused_whatever_else_it_says() {
        let newer = br#"{"format":"semel-export","version":2,"surprise":[1]}"#;
        let error = Header::parse(newer).expect_err("is newer").to_string();
        assert!(error.contains("version 2") && error.contains("upgrade"), "{error}");
    }

    #[test]
    fn what_is_no_export_is_refused() {
        for line in [&b"{}"[..], b"hello", b"", br#"{"format":"else","version":1}"#] {
            assert!(Header::parse(line).is_err());
        }
        let header = Header::new("memory:".to_owned(), String::new(), None);
        assert!(Header::parse(&serde_json::to_vec(&header).expect("is JSON")).is_ok());
    }

    #[test]
    fn an_end_is_told_from_a_record() {
        let end = serde_json::to_vec(&End::new(7)).expect("is JSON");
        assert_eq!(End::parse(&end).map(End::records), Some(7));
        assert!(End::parse(br#"{"id":"00"}"#).is_none());
    }
}
