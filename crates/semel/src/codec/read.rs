//! The strict reader: whatever is not exactly what the writer writes is an error.

use std::sync::Arc;
use std::time::Duration;

use super::envelope::corrupt;
use super::layout::{flag, kind, note, tag};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::Lapse;
use crate::record::{
    Done, Duplicates, Held, MISMATCHED_FINGERPRINTS_MAX, Mismatches, PermitId, Record, Released, Running,
    State, Step, Version,
};

const FOREIGN_KEY: &str = "has a key that no caller could have given";

/// The key with this text, which anybody may have written.
pub(super) fn untrusted_key(bytes: &[u8]) -> Result<Key> {
    Key::from_text(text(bytes)?).map_err(|error| corrupt(FOREIGN_KEY).caused_by(error))
}

/// Bytes as the text that they should be.
pub(super) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| corrupt("has text that is no UTF-8").caused_by(error))
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// The record that all of the payload is.
    pub(super) fn record(mut self, key: impl FnOnce(&[u8]) -> Result<Key>) -> Result<Record> {
        let text = self.bytes()?;
        let key = key(text)?;
        // Making a key trims its parts, so without this a record could be spelled in two ways.
        if key.text().as_bytes() != text {
            return Err(corrupt(FOREIGN_KEY));
        }
        let flags = self.flags(flag::ALL)?;
        let has = |flag: u8| flags & flag != 0;
        let record = Record {
            key,
            fingerprint: has(flag::FINGERPRINT).then(|| self.fingerprint()).transpose()?,
            attempt: self.small_number()?,
            pardoned: self.small_number()?,
            lapse: if has(flag::LAPSE_HOLD) { Lapse::Hold } else { Lapse::Rerun },
            retention: self.span()?,
            first_seen_at: self.moment()?,
            changed_at: self.moment()?,
            first_event: has(flag::FIRST_EVENT).then(|| self.text()).transpose()?.map(Box::from),
            mismatches: self.mismatches()?,
            duplicates: Duplicates {
                count: self.number()?,
                last_seen_at: has(flag::LAST_SEEN_AT).then(|| self.moment()).transpose()?,
            },
            version: Version::new(self.number()?),
            state: self.state()?,
        };
        if self.rest.is_empty() { Ok(record) } else { Err(corrupt("has bytes behind its end")) }
    }

    fn mismatches(&mut self) -> Result<Mismatches> {
        let count = self.number()?;
        let kept = self.number()?;
        if kept > MISMATCHED_FINGERPRINTS_MAX as u64 || kept > count {
            return Err(corrupt("has more mismatched fingerprints than were counted or are kept"));
        }
        let fingerprints = (0..kept).map(|_| self.fingerprint()).collect::<Result<_>>()?;
        Ok(Mismatches { count, fingerprints })
    }

    fn state(&mut self) -> Result<State> {
        match self.byte()? {
            tag::RUNNING => Ok(State::Running(Running {
                permit_id: self.permit_id()?,
                owner: self.text()?.into(),
                fence: Version::new(self.number()?),
                granted_at: self.moment()?,
                leased_at: self.moment()?,
                lease: self.span()?,
                steps: self.steps()?,
            })),
            tag::DONE => Ok(State::Done(Done {
                permit_id: self.permit_id()?,
                fence: Version::new(self.number()?),
                settled_at: self.moment()?,
                outcome: self.outcome()?,
            })),
            tag::RELEASED => Ok(State::Released(Released {
                settled_at: self.moment()?,
                reason: self.text()?.into(),
                steps: self.steps()?,
            })),
            tag::HELD => Ok(State::Held(Held {
                held_at: self.moment()?,
                reason: self.text()?.into(),
                steps: self.steps()?,
            })),
            _ => Err(corrupt("is in a state that does not exist")),
        }
    }

    fn outcome(&mut self) -> Result<Outcome> {
        let kind = self.kind()?;
        let notes = self.flags(note::ALL)?;
        let mut note = |flag: u8| (notes & flag != 0).then(|| self.text()).transpose();
        let (primary, secondary, details) =
            (note(note::PRIMARY)?, note(note::SECONDARY)?, note(note::DETAILS)?);
        let mut outcome = Outcome::new(kind, self.shared()?);
        if let Some(primary) = primary {
            outcome = outcome.primary_reference(primary);
        }
        if let Some(secondary) = secondary {
            outcome = outcome.secondary_reference(secondary);
        }
        if let Some(details) = details {
            outcome = outcome.details_text(details);
        }
        Ok(outcome)
    }

    fn kind(&mut self) -> Result<OutcomeKind> {
        match self.byte()? {
            kind::SUCCESS => Ok(OutcomeKind::Success),
            kind::FAILURE => Ok(OutcomeKind::Failure),
            kind::OTHER => Ok(OutcomeKind::Other(self.text()?.into())),
            _ => Err(corrupt("has an outcome of a kind that does not exist")),
        }
    }

    fn steps(&mut self) -> Result<Vec<Step>> {
        // No capacity from the count: it is untrusted, and a lie must not allocate.
        (0..self.number()?).map(|_| Ok(Step { name: self.text()?.into(), value: self.shared()? })).collect()
    }

    fn fingerprint(&mut self) -> Result<Fingerprint> {
        Ok(Fingerprint::from_bytes(*self.chunk::<32>()?))
    }

    #[inline]
    fn permit_id(&mut self) -> Result<PermitId> {
        Ok(PermitId::new(u128::from_le_bytes(*self.chunk::<16>()?)))
    }

    #[inline]
    fn moment(&mut self) -> Result<Timestamp> {
        Ok(Timestamp::from_micros(self.long()?))
    }

    #[inline]
    fn span(&mut self) -> Result<Duration> {
        Ok(Duration::from_micros(self.long()?))
    }

    fn shared(&mut self) -> Result<Arc<[u8]>> {
        Ok(self.bytes()?.into())
    }

    fn text(&mut self) -> Result<&'a str> {
        text(self.bytes()?)
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let (bytes, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| corrupt("is cut short in the middle"))?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    fn flags(&mut self, known: u8) -> Result<u8> {
        let flags = self.byte()?;
        if flags & !known == 0 { Ok(flags) } else { Err(corrupt("has flags that do not exist")) }
    }

    #[inline]
    fn long(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(*self.chunk::<8>()?))
    }

    #[inline]
    fn small_number(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| corrupt("has a number that is too large"))
    }

    /// LEB128, in its shortest form only: one number has one spelling.
    #[inline]
    fn number(&mut self) -> Result<u64> {
        // Most numbers are small.
        if let Some((&byte, rest)) = self.rest.split_first()
            && byte < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(byte));
        }
        self.long_number()
    }

    /// A number of more than one byte.
    fn long_number(&mut self) -> Result<u64> {
        let mut number: u64 = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let placed = bits << shift;
            if placed >> shift != bits {
                return Err(corrupt("has a number that is too large"));
            }
            number |= placed;
            if byte & 0x80 == 0 {
                return if byte == 0 { Err(corrupt("has a padded number")) } else { Ok(number) };
            }
        }
        Err(corrupt("has a number that is too large"))
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(*self.chunk::<1>()?))
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (chunk, rest) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| corrupt("is cut short in the middle"))?;
        self.rest = rest;
        Ok(chunk)
    }
}
