//! A record as Redis holds it: version and moment of its last write, until when it is kept, when the sweep checks it,
//! eight bytes each; and the draft that was written.
//!
//! Every write sends the whole draft, so what is open in it is stamped by that very write. The server need not read a draft
//! to stamp it: it stores the stamps before the draft, and the reader puts both together.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Draft, Record, Version};
use semel::{Error, ErrorKind, Key, RecordId, Result, codec};

/// The draft as the bytes that are stored.
pub(crate) fn draft(draft: &Draft) -> Result<Vec<u8>> {
    codec::encode(draft.unstamped())
}

/// What a stored record must start with to be at this version; nothing for one that must not be there.
pub(crate) fn expected(version: Option<Version>) -> Vec<u8> {
    version.map(|version| version.get().to_be_bytes().to_vec()).unwrap_or_default()
}

/// Which record is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// The one of this key, which the record then shares: digesting the stored one anew costs more than all the rest.
    Key(&'a Key),
    /// The one with this id.
    Id(RecordId),
}

impl Asked<'_> {
    pub(crate) fn id(self) -> RecordId {
        match self {
            Self::Key(key) => key.id(),
            Self::Id(id) => id,
        }
    }

    fn decode(self, bytes: &[u8]) -> Result<Record> {
        match self {
            Self::Key(key) => codec::decode_for(bytes, key),
            Self::Id(_) => codec::decode(bytes),
        }
    }
}

/// The record that was stored as these bytes.
pub(crate) fn record(bytes: &[u8], asked: Asked<'_>) -> Result<Arc<Record>> {
    let (version, rest) = bytes.split_first_chunk().ok_or_else(cut_short)?;
    let (changed_at, rest) = rest.split_first_chunk().ok_or_else(cut_short)?;
    let (_keep_until_and_due, rest) = rest.split_first_chunk::<16>().ok_or_else(cut_short)?;
    let draft = Draft::from_unstamped(asked.decode(rest)?);
    if draft.key().id() != asked.id() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the record of another key is stored here; inspect it before anything else",
        ));
    }
    let version = Version::new(u64::from_be_bytes(*version));
    Ok(draft.stamp(version, Timestamp::from_micros(u64::from_be_bytes(*changed_at))))
}

#[cold]
fn cut_short() -> Error {
    Error::new(ErrorKind::Corrupt, "a stored record is cut short; inspect it before anything else")
}
