//! One record as a line of JSON, lossless, with a sum that tells whether it was changed.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Duplicates, MISMATCHED_FINGERPRINTS_MAX, Mismatches, Record, Version};
use semel::{Fingerprint, Key, Lapse};
use serde::{Deserialize, Serialize};

use super::state::{StateLine, moment};

/// A record. The order of its members is part of the format: the sum is over them in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    id: String,
    scope: Vec<String>,
    operation: String,
    name: String,
    fingerprint: Option<String>,
    state: StateLine,
    attempt: u32,
    pardoned: u32,
    lapse: LapseLine,
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

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// The id that a line is about, if it is a whole one.
pub(super) fn id_of(text: &[u8]) -> Result<String, String> {
    read(text).map(|record| record.key.id().to_string())
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
            pardoned: record.pardoned,
            lapse: match record.lapse {
                Lapse::Rerun => LapseLine::Rerun,
                Lapse::Hold => LapseLine::Hold,
            },
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
            pardoned: self.pardoned,
            lapse: match self.lapse {
                LapseLine::Rerun => Lapse::Rerun,
                LapseLine::Hold => Lapse::Hold,
            },
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
pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn fingerprint_text(fingerprint: Fingerprint) -> String {
    use std::fmt::Write;
    fingerprint.as_bytes().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    let refused = || "a fingerprint is not 64 hex digits".to_owned();
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err(refused());
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| refused())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
    }
    Ok(Fingerprint::from_bytes(bytes))
}
