//! The bytes that a database keeps for one key, as many as semel keeps: a fixed head, then the texts.

use anyhow::{Context, Result};
use semel::{Key, LEASE_DEFAULT, RETENTION_DEFAULT};

use super::Id;
use crate::inputs::{self, Name, OPERATION, SCOPE};

const RUNNING: u8 = 1;
const DONE: u8 = 2;
const OWNER: &[u8] = b"pid 1042";
/// Version, moment of removal, state.
const HEAD_BYTES: usize = 17;
const FINGERPRINT_AT: usize = HEAD_BYTES + 6 * 8;
/// Where the length of the first text is: behind the fingerprint and the permit id.
const TEXTS_AT: usize = FINGERPRINT_AT + 32 + 16;

pub(crate) struct Row {
    pub(crate) id: Id,
    pub(crate) version: u64,
    pub(crate) until_micros: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Row {
    /// The row of a key that somebody runs.
    pub(crate) fn running(number: u64, now_micros: u64) -> Result<Self> {
        let span = LEASE_DEFAULT.saturating_add(RETENTION_DEFAULT);
        Self::new(number, now_micros, now_micros + micros(span), RUNNING, OWNER)
    }

    /// The row of a key that is done, with its outcome.
    pub(crate) fn done(number: u64, now_micros: u64, outcome: &[u8]) -> Result<Self> {
        Self::new(number, now_micros, now_micros + micros(RETENTION_DEFAULT), DONE, outcome)
    }

    /// `last` is what only this state has: who runs, or the outcome.
    fn new(number: u64, now_micros: u64, until_micros: u64, state: u8, last: &[u8]) -> Result<Self> {
        let key = Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?;
        let version = u64::from(state);
        let mut bytes = Vec::with_capacity(TEXTS_AT + 64 + last.len());
        for part in [version, until_micros] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.push(state);
        let spans = [micros(LEASE_DEFAULT), micros(RETENTION_DEFAULT)];
        // First seen, granted, changed; lease, retention; fence.
        for part in [now_micros, now_micros, now_micros, spans[0], spans[1], version] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.extend_from_slice(&inputs::digest(number));
        bytes.extend_from_slice(&u128::from(number).to_le_bytes());
        for text in [SCOPE.as_bytes(), OPERATION.as_bytes(), Name::of(number).as_str().as_bytes(), last] {
            bytes.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
            bytes.extend_from_slice(text);
        }
        Ok(Self { id: *key.id().as_bytes(), version, until_micros, bytes })
    }
}

pub(crate) struct Kept<'a>(&'a [u8]);

impl<'a> Kept<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn version(&self) -> Result<u64> {
        self.number(0)
    }

    pub(crate) fn until_micros(&self) -> Result<u64> {
        self.number(8)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.get(16) == Some(&DONE)
    }

    pub(crate) fn fingerprint(&self) -> Option<&'a [u8]> {
        self.0.get(FINGERPRINT_AT..FINGERPRINT_AT + 32)
    }

    /// Who runs, or the outcome: the fourth text.
    pub(crate) fn last(&self) -> Option<&'a [u8]> {
        let mut rest = self.0.get(TEXTS_AT..)?;
        let mut text: &[u8] = &[];
        for _ in 0..4 {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            (text, rest) = behind.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        }
        Some(text)
    }

    fn number(&self, at: usize) -> Result<u64> {
        let bytes = self.0.get(at..at + 8).context("a row has a head")?;
        Ok(u64::from_le_bytes(bytes.try_into()?))
    }
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Response;

    #[test]
    fn a_row_gives_back_what_was_put_into_it() {
        let outcome = Response::new().encoded();
        let row = Row::done(42, 1_000, &outcome).unwrap();
        let kept = Kept::new(&row.bytes);
        assert_eq!((kept.version().unwrap(), kept.until_micros().unwrap()), (2, row.until_micros));
        assert_eq!((kept.is_done(), kept.fingerprint()), (true, Some(&inputs::digest(42)[..])));
        assert_eq!(kept.last(), Some(&outcome[..]));
        let row = Row::running(42, 1_000).unwrap();
        assert_eq!((Kept::new(&row.bytes).is_done(), Kept::new(&row.bytes).last()), (false, Some(OWNER)));
    }
}
