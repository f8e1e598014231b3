//! What a running server says of its store to tools elsewhere: records exactly as they are kept, and what came of an action.
//! The server writes these types and the command line reads them. Members are only ever added.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Finding, Loaded, Page, Swept, Verdict};
use semel::{Error, ErrorKind, RecordId, Result, codec};
use serde::{Deserialize, Serialize};

use crate::record_json::read_hex;

/// How many records one load may ask for.
pub const LOAD_IDS_MAX: usize = 64;
/// How many records one scan may ask for.
pub const SCAN_RECORDS_MAX: usize = 1_000;
/// How many records one sweep may remove.
pub const SWEEP_RECORDS_MAX: u32 = 10_000;

/// A server, its store, and what the caller may do there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServedStore {
    /// The release of semel that answers.
    #[cfg_attr(feature = "openapi", schema(example = "0.2.0"))]
    pub version: String,
    /// The address of its store, without secrets.
    #[cfg_attr(feature = "openapi", schema(example = "file:./semel-data"))]
    pub address: String,
    /// What its acknowledgements survive, by the settings that were found.
    pub survives: String,
    /// The name of the caller's token, as the audit log has it.
    pub caller: String,
    /// The role of the caller's token: `read`, `operate`, or `all` for a server without tokens.
    #[cfg_attr(feature = "openapi", schema(example = "operate"))]
    pub role: String,
    /// The scope that the caller cannot leave; empty for none.
    pub scope: Vec<String>,
    /// Whether records come whole. If not, what is secret in them is blank: bytes of outcomes and steps are zeros.
    pub whole_records: bool,
    /// Whether the caller may act on records.
    pub may_act: bool,
}

/// A record exactly as it is kept, in the format of `semel::codec`, as base64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
#[serde(transparent)]
pub struct EncodedRecord(String);

impl EncodedRecord {
    /// The record, encoded.
    pub fn of(record: &Record) -> Result<Self> {
        Ok(Self(STANDARD.encode(codec::encode(record)?)))
    }

    /// How long the text is.
    pub fn text_bytes(&self) -> usize {
        self.0.len()
    }

    /// The record that was encoded.
    pub fn record(&self) -> Result<Arc<Record>> {
        let bytes = STANDARD.decode(&self.0).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "a record of the server is not base64; ask again").caused_by(error)
        })?;
        codec::decode(&bytes).map(Arc::new)
    }
}

/// A page of records in the order of their ids, those past their time included.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScannedRecords {
    /// The store's now, in microseconds since 1970.
    pub now_micros: u64,
    /// The records that match.
    pub records: Vec<EncodedRecord>,
    /// Records that cannot be read; none for a token with a scope, because it is not known whose they are.
    pub damaged: Vec<DamagedRecord>,
    /// What to give as `after` for the next page; `null` after the last. A page may be short, or empty, and not the last.
    pub next: Option<String>,
}

/// A record that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DamagedRecord {
    /// What identifies it.
    pub id: String,
    /// Why it cannot be read.
    pub error: String,
}

impl ScannedRecords {
    /// The page, as a store has it.
    pub fn page(self) -> Result<Answer<Page>> {
        let id = |digits: &str| {
            read_hex(digits).map(RecordId::from_bytes).ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "an id of the server is not 64 hex digits; ask again")
            })
        };
        let records = self.records.iter().map(EncodedRecord::record).collect::<Result<_>>()?;
        let damaged =
            self.damaged.into_iter().map(|damaged| Ok((id(&damaged.id)?, unreadable(damaged.error))));
        let page = Page {
            records,
            damaged: damaged.collect::<Result<_>>()?,
            next: self.next.as_deref().map(id).transpose()?,
        };
        Ok(Answer::new(Timestamp::from_micros(self.now_micros), page))
    }
}

/// Records by their ids.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoadedRecords {
    /// The store's now, in microseconds since 1970.
    pub now_micros: u64,
    /// One answer for each id, in their order. There may be fewer, because records are large: ask again for the rest.
    pub records: Vec<LoadedRecord>,
}

/// What was found under an id: a record, none, or one that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoadedRecord {
    /// The record; `null` if there is none that the caller may know of.
    pub record: Option<EncodedRecord>,
    /// Why it cannot be read.
    pub error: Option<String>,
}

impl LoadedRecord {
    /// What was found, as a store has it.
    pub fn loaded(self) -> Loaded {
        match (self.error, self.record) {
            (Some(error), _) => Err(unreadable(error)),
            (None, record) => record.map(|record| record.record()).transpose(),
        }
    }
}

fn unreadable(error: String) -> Error {
    Error::new(ErrorKind::Corrupt, error)
}

/// The settings of a store against its promise, and whether it takes claims.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckedStore {
    /// What was found.
    pub findings: Vec<StoreFinding>,
    /// Whether a new claim would be taken now.
    pub ready: bool,
    /// Why it would not; `null` if it would.
    pub not_ready: Option<String>,
}

/// A setting that the promise of a store depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreFinding {
    /// The store's own name for it.
    #[cfg_attr(feature = "openapi", schema(example = "file system"))]
    pub setting: String,
    /// What it is set to; `null` if it cannot be read.
    #[cfg_attr(feature = "openapi", schema(example = "ext4"))]
    pub found: Option<String>,
    /// What the promise needs.
    pub wanted: String,
    /// `kept`, `broken` or `unreadable`.
    #[cfg_attr(feature = "openapi", schema(example = "kept"))]
    pub verdict: String,
}

impl From<&Finding> for StoreFinding {
    fn from(finding: &Finding) -> Self {
        Self {
            setting: finding.setting.to_string(),
            found: finding.found.as_deref().map(str::to_owned),
            wanted: finding.wanted.to_string(),
            verdict: finding.verdict.as_str().to_owned(),
        }
    }
}

impl From<StoreFinding> for Finding {
    fn from(finding: StoreFinding) -> Self {
        let verdicts = [Verdict::Kept, Verdict::Broken, Verdict::Unreadable];
        let verdict = verdicts.into_iter().find(|verdict| verdict.as_str() == finding.verdict);
        Self {
            setting: finding.setting.into(),
            found: finding.found.map(Into::into),
            wanted: finding.wanted.into(),
            // A word of a later release: what it means is not known here.
            verdict: verdict.unwrap_or(Verdict::Unreadable),
        }
    }
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweptRecords {
    /// How many records were removed.
    pub removed: u64,
    /// Whether there may be more past their retention: sweep again.
    pub more_left: bool,
}

impl From<Swept> for SweptRecords {
    fn from(swept: Swept) -> Self {
        Self { removed: swept.removed as u64, more_left: swept.more_left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_of_a_later_release_is_not_taken_for_kept() {
        for (word, verdict) in
            [("kept", Verdict::Kept), ("broken", Verdict::Broken), ("doubtful", Verdict::Unreadable)]
        {
            let finding = StoreFinding {
                setting: "fsync".to_owned(),
                found: None,
                wanted: "on".to_owned(),
                verdict: word.to_owned(),
            };
            assert_eq!(Finding::from(finding).verdict, verdict);
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in ["", "!", "AAAA"] {
            let error = EncodedRecord(text.to_owned()).record().expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}
