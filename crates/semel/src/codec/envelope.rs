//! What stands around a payload: magic, version, length and checksum.

use super::read::{self, Reader};
use super::write;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::record::Record;

const MAGIC: [u8; 4] = *b"SEML";
/// The format that is written; format 1 is still read.
const VERSION: u8 = 2;
/// Magic, version and payload length.
const HEAD_BYTES: usize = 9;
const CHECKSUM_BYTES: usize = 4;

/// The record as bytes.
pub fn encode(record: &Record) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(256);
    encode_into(&mut bytes, record)?;
    Ok(bytes)
}

/// Appends the record as bytes, for those who keep their buffers. After an error, what was appended means nothing.
pub fn encode_into(bytes: &mut Vec<u8>, record: &Record) -> Result<()> {
    let start = bytes.len();
    bytes.extend_from_slice(&MAGIC);
    bytes.push(VERSION);
    bytes.extend_from_slice(&[0; 4]);
    write::payload(bytes, record);
    let length = bytes.len().saturating_sub(start).saturating_sub(HEAD_BYTES);
    let length = u32::try_from(length)
        .map_err(|_| Error::invalid("the record is over 4 GiB; keep its outcome elsewhere"))?;
    let field = bytes.get_mut(start.saturating_add(5)..).and_then(<[u8]>::first_chunk_mut);
    if let Some(field) = field {
        *field = length.to_le_bytes();
    }
    let checksum = crc32c::crc32c(bytes.get(start..).unwrap_or_default());
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The record that `bytes` hold: all of them, and nothing else.
pub fn decode(bytes: &[u8]) -> Result<Record> {
    decode_with(bytes, read::untrusted_key)
}

/// The same where the caller knows which key it asked for: if the record is that key's, the key is shared instead of
/// being copied and digested anew.
pub fn decode_for(bytes: &[u8], key: &Key) -> Result<Record> {
    decode_with(bytes, |text| {
        if key.text().as_bytes() == text { Ok(key.clone()) } else { read::untrusted_key(text) }
    })
}

fn decode_with(bytes: &[u8], key: impl FnOnce(&[u8]) -> Result<Key>) -> Result<Record> {
    let (magic, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| corrupt("is cut short"))?;
    if *magic != MAGIC {
        return Err(corrupt("does not start with the magic of a record"));
    }
    let (&version, rest) = rest.split_first().ok_or_else(|| corrupt("is cut short"))?;
    if version > VERSION {
        return Err(Error::new(
            ErrorKind::Newer,
            format!("record format {version} is newer than this release reads ({VERSION}); upgrade it"),
        ));
    }
    let format = match version {
        1 => read::Format::One,
        VERSION => read::Format::Two,
        _ => return Err(corrupt("has a format version that never was")),
    };
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(|| corrupt("is cut short"))?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (payload, checksum) = rest.split_at_checked(length).ok_or_else(|| corrupt("is cut short"))?;
    let checksum: [u8; CHECKSUM_BYTES] =
        checksum.try_into().map_err(|_| corrupt("is cut short, or has bytes behind its end"))?;
    let covered = bytes.get(..HEAD_BYTES.saturating_add(length)).unwrap_or_default();
    if crc32c::crc32c(covered) != u32::from_le_bytes(checksum) {
        return Err(corrupt("does not match its checksum"));
    }
    Reader::new(payload, format).record(key)
}

#[cold]
pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a stored record {what}; look at it before anything else"))
}
