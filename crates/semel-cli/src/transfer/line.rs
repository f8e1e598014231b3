//! The lines of an export: its first and its last, and one for each record, lossless, with a sum that tells whether it was
//! changed.

use std::fmt::Write;
use std::time::Duration;

use anyhow::bail;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::clock::Timestamp;
use semel::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, HISTORY_MAX, Held, HoldReason, LABEL_BYTES_MAX,
    MISMATCHED_FINGERPRINTS_MAX, Mismatches, PermitId, Record, Released, Running, State, Step, Version,
};
use semel::{Fingerprint, Key, Lapse, Outcome, OutcomeKind, Reference};
use semel_ops::record_json::read_hex;
use serde::{Deserialize, Serialize};

mod line_1;

/// What the first line says, so that nothing else is taken for an export.
const FORMAT: &str = "semel-export";
/// The version of the lines that this release writes, and the newest that it reads. Older lines are read, too.
const VERSION: u32 = 2;

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

impl Header {
    /// Whether this release may go on with the export: all its lines are of one version.
    pub(super) fn is_current(&self) -> bool {
        self.version == VERSION
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
    label: Option<String>,
    state: StateLine,
    attempt: u32,
    attempts_forgiven: u32,
    /// Attempts that ended before the one that the state speaks of, oldest first.
    past_attempts: Vec<AttemptLine>,
    #[serde(with = "LapseLine")]
    lapse: Lapse,
    retention_us: u64,
    first_seen_at_us: u64,
    changed_at_us: u64,
    first_event: Option<String>,
    mismatches: MismatchesLine,
    duplicates: DuplicatesLine,
    version: u64,
    /// CRC-32C of the line without it, in hex. Take it out of a line that you edit.
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

/// The record of a line of any version, or what is wrong with it.
pub(super) fn read(text: &[u8]) -> Result<Record, String> {
    match serde_json::from_slice::<Line>(text) {
        Ok(mut line) => {
            let said = line.crc.take();
            checked(said, &line)?;
            line.record()
        }
        Err(error) if !line_1::is_one(text) => Err(error.to_string()),
        Err(_) => line_1::read(text)?.record(),
    }
}

/// Refuses a line that was changed since its sum was written.
fn checked(said: Option<String>, line: &impl Serialize) -> Result<(), String> {
    let Some(said) = said else { return Ok(()) };
    let found = sum(line).map_err(|error| error.to_string())?;
    if said == found {
        return Ok(());
    }
    Err(format!("does not match its crc ({said} is said, {found} was found): it was changed"))
}

fn sum(line: &impl Serialize) -> serde_json::Result<String> {
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
            label: record.label.as_deref().map(str::to_owned),
            state: StateLine::of(&record.state),
            attempt: record.attempt,
            attempts_forgiven: record.attempts_forgiven,
            past_attempts: record.past_attempts.iter().map(AttemptLine::of).collect(),
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
        if self.label.as_ref().is_some_and(|label| label.len() > LABEL_BYTES_MAX) {
            return Err(format!("its label is longer than {LABEL_BYTES_MAX} bytes"));
        }
        if self.past_attempts.len() >= HISTORY_MAX {
            return Err(format!("{HISTORY_MAX} or more past attempts"));
        }
        Ok(Record {
            key,
            fingerprint: self.fingerprint.as_deref().map(fingerprint).transpose()?,
            label: self.label.map(Into::into),
            state: self.state.state()?,
            attempt: self.attempt,
            attempts_forgiven: self.attempts_forgiven,
            past_attempts: self.past_attempts.into_iter().map(AttemptLine::attempt).collect(),
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
        grant: GrantLine,
        leased_at_us: u64,
        lease_us: u64,
        steps: Vec<StepLine>,
    },
    Done {
        grant: GrantLine,
        settled_at_us: u64,
        outcome: OutcomeLine,
    },
    Released {
        grant: GrantLine,
        settled_at_us: u64,
        reason: String,
        steps: Vec<StepLine>,
    },
    Held {
        grant: GrantLine,
        held_at_us: u64,
        reason: HoldLine,
        probed_at_us: Option<u64>,
        steps: Vec<StepLine>,
    },
}

/// A grant of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantLine {
    permit_id: String,
    owner: String,
    fence: u64,
    granted_at_us: u64,
}

/// Why a record is held.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HoldLine {
    Lapsed,
    Attempts,
    /// In the words of the run.
    Unknown(String),
}

/// An attempt that is over.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttemptLine {
    attempt: u32,
    owner: String,
    from_us: u64,
    until_us: u64,
    #[serde(with = "AttemptEndLine")]
    ended: AttemptEnd,
    reason: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AttemptEnd", rename_all = "lowercase")]
enum AttemptEndLine {
    Completed,
    Released,
    Lapsed,
    Held,
}

/// What a run produced.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeLine {
    kind: String,
    base64: String,
    references: Vec<ReferenceLine>,
    /// JSON text, exactly as it was given.
    details: Option<String>,
}

/// Something that a run created.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceLine {
    kind: String,
    id: String,
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
        let grant = GrantLine::of(state.grant());
        match state {
            State::Running(running) => Self::Running {
                grant,
                leased_at_us: running.leased_at.as_micros(),
                lease_us: micros(running.lease),
                steps: steps(&running.steps),
            },
            State::Done(done) => Self::Done {
                grant,
                settled_at_us: done.settled_at.as_micros(),
                outcome: OutcomeLine::of(&done.outcome),
            },
            State::Released(released) => Self::Released {
                grant,
                settled_at_us: released.settled_at.as_micros(),
                reason: released.reason.to_string(),
                steps: steps(&released.steps),
            },
            State::Held(held) => Self::Held {
                grant,
                held_at_us: held.held_at.as_micros(),
                reason: HoldLine::of(&held.reason),
                probed_at_us: held.probed_at.map(Timestamp::as_micros),
                steps: steps(&held.steps),
            },
        }
    }

    fn state(self) -> Result<State, String> {
        Ok(match self {
            Self::Running { grant, leased_at_us, lease_us, steps } => State::Running(Running {
                grant: grant.grant()?,
                leased_at: moment(leased_at_us)?,
                lease: Duration::from_micros(lease_us),
                steps: read_steps(steps)?,
            }),
            Self::Done { grant, settled_at_us, outcome } => State::Done(Done {
                grant: grant.grant()?,
                settled_at: moment(settled_at_us)?,
                outcome: outcome.outcome()?,
            }),
            Self::Released { grant, settled_at_us, reason, steps } => State::Released(Released {
                grant: grant.grant()?,
                settled_at: moment(settled_at_us)?,
                reason: reason.into(),
                steps: read_steps(steps)?,
            }),
            Self::Held { grant, held_at_us, reason, probed_at_us, steps } => State::Held(Held {
                grant: grant.grant()?,
                held_at: moment(held_at_us)?,
                reason: reason.reason(),
                probed_at: probed_at_us.map(Timestamp::from_micros),
                steps: read_steps(steps)?,
            }),
        })
    }
}

impl GrantLine {
    fn of(grant: &Grant) -> Self {
        Self {
            permit_id: permit_text(grant.permit_id),
            owner: grant.owner.to_string(),
            fence: grant.fence.get(),
            granted_at_us: grant.granted_at.as_micros(),
        }
    }

    fn grant(self) -> Result<Grant, String> {
        Ok(Grant {
            permit_id: permit(&self.permit_id)?,
            owner: self.owner.into(),
            fence: Version::new(self.fence),
            granted_at: moment(self.granted_at_us)?,
        })
    }
}

impl HoldLine {
    fn of(reason: &HoldReason) -> Self {
        match reason {
            HoldReason::Lapsed => Self::Lapsed,
            HoldReason::Attempts => Self::Attempts,
            HoldReason::Unknown(words) => Self::Unknown(words.to_string()),
        }
    }

    fn reason(self) -> HoldReason {
        match self {
            Self::Lapsed => HoldReason::Lapsed,
            Self::Attempts => HoldReason::Attempts,
            Self::Unknown(words) => HoldReason::Unknown(words.into()),
        }
    }
}

impl AttemptLine {
    fn of(ended: &EndedAttempt) -> Self {
        Self {
            attempt: ended.number,
            owner: ended.owner.to_string(),
            from_us: ended.from.as_micros(),
            until_us: ended.until.as_micros(),
            ended: ended.end,
            reason: ended.reason.to_string(),
        }
    }

    fn attempt(self) -> EndedAttempt {
        EndedAttempt {
            number: self.attempt,
            owner: self.owner.into(),
            from: Timestamp::from_micros(self.from_us),
            until: Timestamp::from_micros(self.until_us),
            end: self.ended,
            reason: self.reason.into(),
        }
    }
}

impl OutcomeLine {
    fn of(outcome: &Outcome) -> Self {
        let line = |reference: &Reference| ReferenceLine {
            kind: reference.kind.to_string(),
            id: reference.id.to_string(),
        };
        Self {
            kind: outcome.kind().as_str().to_owned(),
            base64: STANDARD.encode(outcome.bytes()),
            references: outcome.references().iter().map(line).collect(),
            details: outcome.details_json().map(str::to_owned),
        }
    }

    fn outcome(self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new(OutcomeKind::from_word(&self.kind), bytes(&self.base64)?);
        for ReferenceLine { kind, id } in self.references {
            outcome = outcome.reference(kind, id);
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
        let newer = br#"{"format":"semel-export","version":3,"surprise":[1]}"#;
        let error = Header::parse(newer).expect_err("is newer").to_string();
        assert!(error.contains("version 3") && error.contains("upgrade"), "{error}");
    }

    #[test]
    fn what_is_no_export_is_refused() {
        for line in [&b"{}"[..], b"hello", b"", br#"{"format":"else","version":1}"#] {
            assert!(Header::parse(line).is_err());
        }
        let header = Header::new("memory:".to_owned(), String::new(), None);
        assert!(Header::parse(&serde_json::to_vec(&header).expect("is JSON")).is_ok());
    }

    /// What release 0.1 wrote of a record.
    fn old(state: &str) -> String {
        let key = Key::scoped(["acme"], "charge", "order-1").expect("is fine");
        format!(
            r#"{{"id":"{}","scope":["acme"],"operation":"charge","name":"order-1","fingerprint":null,"state":{state},"attempt":3,"pardoned":2,"lapse":"rerun","retention_us":86400000000,"first_seen_at_us":7,"changed_at_us":9,"first_event":"evt-1","mismatches":{{"count":0,"fingerprints":[]}},"duplicates":{{"count":4,"last_seen_at_us":9}},"version":12}}"#,
            key.id()
        )
    }

    /// The line with the sum that release 0.1 wrote: over the line as it is.
    fn summed(line: &str) -> String {
        let crc = crc32c::crc32c(line.as_bytes());
        format!(r#"{},"crc":"{crc:08x}"}}"#, line.strip_suffix('}').expect("is an object"))
    }

    const OLD_DONE: &str = r#"{"done":{"permit_id":"0000000000000000000000000000002a","fence":8,"settled_at_us":9,"outcome":{"kind":"success","base64":"aGk=","primary":"ch_1","secondary":"acct_9","details":"{\"fee\":12}"}}}"#;

    #[test]
    fn a_line_of_the_first_version_is_read_with_its_sum() {
        let record = read(summed(&old(OLD_DONE)).as_bytes()).expect("is whole");
        assert_eq!((record.attempt, record.attempts_forgiven, record.label.as_deref()), (3, 2, None));
        let outcome = record.outcome().expect("is done");
        let references: Vec<_> = outcome.references().iter().map(|one| (&*one.kind, &*one.id)).collect();
        assert_eq!(references, [("primary", "ch_1"), ("secondary", "acct_9")]);
        assert_eq!((outcome.details_json(), record.version.get()), (Some("{\"fee\":12}"), 12));
        assert_eq!(record.state.grant().permit_id, PermitId::new(42));
        for (state, reason) in [
            (r#"{"released":{"settled_at_us":9,"reason":"try later","steps":[]}}"#, None),
            (r#"{"held":{"held_at_us":9,"reason":"lapsed","steps":[]}}"#, Some(HoldReason::Lapsed)),
            (
                r#"{"held":{"held_at_us":9,"reason":"who knows","steps":[]}}"#,
                Some(HoldReason::Unknown("who knows".into())),
            ),
        ] {
            let record = read(summed(&old(state)).as_bytes()).expect("is whole");
            let held = match &record.state {
                State::Held(held) => Some(held.reason.clone()),
                State::Running(_) | State::Done(_) | State::Released(_) => None,
            };
            assert_eq!(held, reason);
            assert_eq!(*record.state.grant(), Grant::forgotten(Timestamp::from_micros(9)));
            let again = write(&record).expect("is JSON");
            assert_eq!(read(&again).as_ref(), Ok(&record), "it is written as a line of this version");
        }
    }

    #[test]
    fn a_line_of_the_first_version_that_was_changed_is_refused() {
        let line = summed(&old(OLD_DONE));
        let changed = line.replace("\"attempt\":3", "\"attempt\":2");
        assert!(read(changed.as_bytes()).expect_err("was changed").contains("does not match its crc"));
        let unknown = line.replace("\"lapse\"", "\"1apse\"");
        assert!(read(unknown.as_bytes()).expect_err("is damaged").contains("1apse"));
    }

    #[test]
    fn an_end_is_told_from_a_record() {
        let end = serde_json::to_vec(&End::new(7)).expect("is JSON");
        assert_eq!(End::parse(&end).map(End::records), Some(7));
        assert!(End::parse(br#"{"id":"00"}"#).is_none());
    }
}
