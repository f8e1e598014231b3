//! A record as Redis holds it: version and moment of its last write, eight bytes each, and the draft that was written.
//!
//! Every write sends the whole draft, so whatever is open in it is stamped by that very write. The server need not look
//! into a draft to stamp it: it keeps the two stamps beside it, and whoever reads puts them together.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Draft, Record, Version};
use semel::{Error, ErrorKind, Result, codec};

/// The draft as the bytes that are stored.
pub(crate) fn draft(draft: &Draft) -> Result<Vec<u8>> {
    codec::encode(draft.unstamped())
}

/// What a stored record must start with to be at this version; nothing for one that must not be there.
pub(crate) fn expected(version: Option<Version>) -> Vec<u8> {
    version.map(|version| version.get().to_be_bytes().to_vec()).unwrap_or_default()
}

/// The record that was stored as these bytes.
pub(crate) fn record(bytes: &[u8]) -> Result<Arc<Record>> {
    let (version, rest) = bytes.split_first_chunk().ok_or_else(cut_short)?;
    let (changed_at, rest) = rest.split_first_chunk().ok_or_else(cut_short)?;
    let draft = Draft::from_unstamped(codec::decode(rest)?);
    let version = Version::new(u64::from_be_bytes(*version));
    Ok(draft.stamp(version, Timestamp::from_micros(u64::from_be_bytes(*changed_at))))
}

#[cold]
fn cut_short() -> Error {
    Error::new(ErrorKind::Corrupt, "a record in Redis is cut short; look at it before anything else")
}
