//! The strict reader: whatever is not exactly what the writer writes is an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::envelope::corrupt;
use super::layout::{end, flag, hold, kind, note, reference, tag};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::Lapse;
use crate::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, HISTORY_MAX, Held, HoldReason, LABEL_BYTES_MAX,
    MISMATCHED_FINGERPRINTS_MAX, Mismatches, PermitId, Record, Released, Running, State, Step, Version,
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

/// The formats that this release reads; it writes the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Without label, history and kinds of references; a grant only in running and done records.
    One,
    Two,
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    format: Format,
}

impl<'a> Reader<'a> {
    pub(super) fn new(payload: &'a [u8], format: Format) -> Self {
        Self { rest: payload, format }
    }

    /// The record that all of the payload is.
    pub(super) fn record(mut self, key: impl FnOnce(&[u8]) -> Result<Key>) -> Result<Record> {
        let text = self.bytes()?;
        let key = key(text)?;
        // Making a key trims its parts, so without this a record could be spelled in two ways.
        if key.text().as_bytes() != text {
            return Err(corrupt(FOREIGN_KEY));
        }
        let flags = self.flags(self.known(flag::ALL_1, flag::ALL))?;
        let has = |flag: u8| flags & flag != 0;
        let record = Record {
            key,
            fingerprint: has(flag::FINGERPRINT).then(|| self.fingerprint()).transpose()?,
            label: has(flag::LABEL).then(|| self.label()).transpose()?,
            attempt: self.small_number()?,
            attempts_forgiven: self.small_number()?,
            past_attempts: if has(flag::PAST_ATTEMPTS) { self.past_attempts()? } else { Vec::new() },
            lapse: if has(flag::LAPSE_HOLD) { Lapse::Hold } else { Lapse::Rerun },
            retention: self.span()?,
            first_seen_at: self.moment()?,
            changed_at: self.moment()?,
            first_event: has(flag::FIRST_EVENT).then(|| self.text()).transpose()?.map(Arc::from),
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

    /// What may be there in the format that is read.
    fn known(&self, one: u8, two: u8) -> u8 {
        match self.format {
            Format::One => one,
            Format::Two => two,
        }
    }

    fn label(&mut self) -> Result<Arc<str>> {
        let label = self.text()?;
        if label.len() > LABEL_BYTES_MAX {
            return Err(corrupt("has a label that is too long"));
        }
        Ok(label.into())
    }

    fn past_attempts(&mut self) -> Result<Vec<EndedAttempt>> {
        let count = self.number()?;
        // One fewer than a history holds: the state speaks of the last one.
        if count == 0 || count >= HISTORY_MAX as u64 {
            return Err(corrupt("has more or fewer past attempts than are kept"));
        }
        (0..count).map(|_| self.past_attempt()).collect()
    }

    fn past_attempt(&mut self) -> Result<EndedAttempt> {
        Ok(EndedAttempt {
            number: self.small_number()?,
            owner: self.text()?.into(),
            from: self.moment()?,
            until: self.moment()?,
            end: match self.byte()? {
                end::COMPLETED => AttemptEnd::Completed,
                end::RELEASED => AttemptEnd::Released,
                end::LAPSED => AttemptEnd::Lapsed,
                end::HELD => AttemptEnd::Held,
                _ => return Err(corrupt("has an attempt that ended in a way that does not exist")),
            },
            reason: self.text()?.into(),
        })
    }

    fn grant(&mut self) -> Result<Grant> {
        Ok(Grant {
            permit_id: self.permit_id()?,
            owner: self.text()?.into(),
            fence: Version::new(self.number()?),
            granted_at: self.moment()?,
        })
    }

    fn state(&mut self) -> Result<State> {
        match (self.byte()?, self.format) {
            (tag::RUNNING, _) => Ok(State::Running(Running {
                grant: self.grant()?,
                leased_at: self.moment()?,
                lease: self.span()?,
                steps: self.steps()?,
            })),
            (tag::DONE, Format::Two) => Ok(State::Done(Done {
                grant: self.grant()?,
                settled_at: self.moment()?,
                outcome: self.outcome()?,
            })),
            (tag::RELEASED, Format::Two) => Ok(State::Released(Released {
                grant: self.grant()?,
                settled_at: self.moment()?,
                reason: self.text()?.into(),
                steps: self.steps()?,
            })),
            (tag::HELD, Format::Two) => Ok(State::Held(Held {
                grant: self.grant()?,
                held_at: self.moment()?,
                reason: self.hold_reason()?,
                probed_at: Some(self.moment()?).filter(|moment| !moment.is_unstamped()),
                steps: self.steps()?,
            })),
            (tag, Format::One) => self.settled_in_format_1(tag),
            (_, Format::Two) => Err(no_such_state()),
        }
    }

    fn settled_in_format_1(&mut self, tag: u8) -> Result<State> {
        match tag {
            tag::DONE => {
                let (permit_id, fence) = (self.permit_id()?, Version::new(self.number()?));
                let settled_at = self.moment()?;
                let grant = Grant { permit_id, fence, ..Grant::forgotten(settled_at) };
                Ok(State::Done(Done { grant, settled_at, outcome: self.outcome()? }))
            }
            tag::RELEASED => {
                let settled_at = self.moment()?;
                Ok(State::Released(Released {
                    grant: Grant::forgotten(settled_at),
                    settled_at,
                    reason: self.text()?.into(),
                    steps: self.steps()?,
                }))
            }
            tag::HELD => {
                let held_at = self.moment()?;
                Ok(State::Held(Held {
                    grant: Grant::forgotten(held_at),
                    held_at,
                    reason: HoldReason::from_text(self.text()?),
                    probed_at: None,
                    steps: self.steps()?,
                }))
            }
            _ => Err(no_such_state()),
        }
    }

    fn hold_reason(&mut self) -> Result<HoldReason> {
        match self.byte()? {
            hold::LAPSED => Ok(HoldReason::Lapsed),
            hold::ATTEMPTS => Ok(HoldReason::Attempts),
            hold::UNKNOWN => Ok(HoldReason::Unknown(self.text()?.into())),
            _ => Err(corrupt("is held for a reason that does not exist")),
        }
    }

    fn outcome(&mut self) -> Result<Outcome> {
        let kind = self.kind()?;
        let notes = self.flags(self.known(note::ALL_1, note::ALL))?;
        let mut note = |flag: u8| (notes & flag != 0).then(|| self.text()).transpose();
        let unnamed =
            [(reference::PRIMARY, note(note::PRIMARY_1)?), (reference::SECONDARY, note(note::SECONDARY_1)?)];
        let details = note(note::DETAILS)?;
        let references = if notes & note::REFERENCES != 0 { self.references()? } else { Vec::new() };
        let mut outcome = Outcome::new(kind, Bytes::copy_from_slice(self.bytes()?));
        for (kind, id) in unnamed.into_iter().filter_map(|(kind, id)| Some((kind, id?))).chain(references) {
            outcome = outcome.reference(kind, id);
        }
        if let Some(details) = details {
            outcome = outcome.details_text(details);
        }
        Ok(outcome)
    }

    fn references(&mut self) -> Result<Vec<(&'a str, &'a str)>> {
        let count = self.number()?;
        if count == 0 {
            return Err(corrupt("has a list of no references"));
        }
        (0..count).map(|_| Ok((self.text()?, self.text()?))).collect()
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

#[cold]
fn no_such_state() -> crate::error::Error {
    corrupt("is in a state that does not exist")
}
