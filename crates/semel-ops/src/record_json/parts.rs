//! Ids, moments and spans, as JSON has them.

use std::time::Duration;

use semel::RecordId;
use semel::clock::Timestamp;
use serde::{Serialize, Serializer};

use super::hex::Hex;
use crate::format::moment::{Rfc3339, rfc3339};

/// What identifies a record: a digest of its key, in 64 hex digits.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$",
    example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))]
pub struct Id(pub RecordId);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Hex::of(self.0.as_bytes()).as_str())
    }
}

/// A moment on the store's clock, in UTC, to the microsecond.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime, example = "2026-11-16T02:14:26.123456Z"))]
pub struct Moment(pub Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Rfc3339::of(self.0) {
            Some(text) => serializer.serialize_str(text.as_str()),
            None => serializer.serialize_str(&rfc3339(self.0)),
        }
    }
}

/// A span in whole milliseconds.
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
