//! A permit as text: what another server on the same store needs to go on under it.
//!
//! `p1.` and, in base64url: the permit id (16 bytes), fence (8), attempt (4), lease in microseconds (8), the number of
//! the key's parts (1), and each part behind its length (2). It is not signed: the 128 random bits of the permit id are
//! the secret, and the store refuses whoever does not have it. Everything else in it only says what to ask the store for.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use semel::record::{PermitId, Version};
use semel::{Key, NAME_BYTES_MAX, PART_BYTES_MAX, PermitParts, SCOPE_PARTS_MAX};

use super::problem::Problem;

const PREFIX: &str = "p1.";
/// Everything before the key.
const HEAD_BYTES: usize = 16 + 8 + 4 + 8 + 1;
/// With a key of the longest parts.
const BYTES_MAX: usize = HEAD_BYTES + (SCOPE_PARTS_MAX + 1) * (2 + PART_BYTES_MAX) + 2 + NAME_BYTES_MAX;
/// What these bytes take as text.
pub(super) const TEXT_BYTES_MAX: usize = PREFIX.len() + BYTES_MAX.div_ceil(3) * 4;

/// A permit that was read, and whose key is not made yet: a server that granted it has that already.
pub(super) struct Presented {
    bytes: Vec<u8>,
    permit_id: PermitId,
    fence: Version,
    attempt: u32,
    lease: Duration,
}

pub(super) fn written(parts: &PermitParts) -> String {
    let key = &parts.key;
    let mut bytes = Vec::with_capacity(192);
    bytes.extend_from_slice(&parts.permit_id.get().to_be_bytes());
    bytes.extend_from_slice(&parts.fence.get().to_be_bytes());
    bytes.extend_from_slice(&parts.attempt.to_be_bytes());
    bytes.extend_from_slice(&u64::try_from(parts.lease.as_micros()).unwrap_or(u64::MAX).to_be_bytes());
    let count = key.scope().count().saturating_add(2);
    bytes.push(u8::try_from(count).unwrap_or(u8::MAX));
    for part in parts_of(key) {
        bytes.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    let mut text =
        String::with_capacity(PREFIX.len().saturating_add(bytes.len().div_ceil(3).saturating_mul(4)));
    text.push_str(PREFIX);
    URL_SAFE_NO_PAD.encode_string(&bytes, &mut text);
    text
}

fn parts_of(key: &Key) -> impl Iterator<Item = &str> {
    key.scope().chain([key.operation(), key.name()])
}

/// Reads a permit. Only what [`written`] writes is one: a text that was cut, joined or mended is refused.
pub(super) fn read(text: &str) -> Result<Presented, Problem> {
    presented(text).ok_or_else(|| {
        Problem::invalid("permit is no permit; send the text of a run back exactly as it came")
    })
}

fn presented(text: &str) -> Option<Presented> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
    let (permit_id, rest) = bytes.split_first_chunk::<16>()?;
    let (fence, rest) = rest.split_first_chunk::<8>()?;
    let (attempt, rest) = rest.split_first_chunk::<4>()?;
    let (lease, rest) = rest.split_first_chunk::<8>()?;
    let permit_id = PermitId::new(u128::from_be_bytes(*permit_id));
    let fence = Version::new(u64::from_be_bytes(*fence));
    let attempt = u32::from_be_bytes(*attempt);
    let lease = Duration::from_micros(u64::from_be_bytes(*lease));
    let is_possible = fence.get() > 0 && attempt > 0 && !lease.is_zero() && lease <= semel::LEASE_MAX;
    let (count, parts) = rest.split_first()?;
    if !is_possible || !(2..=SCOPE_PARTS_MAX.saturating_add(2)).contains(&usize::from(*count)) {
        return None;
    }
    let mut listed = Parts(parts);
    for _ in 0..*count {
        listed.next()?;
    }
    if !listed.0.is_empty() {
        return None;
    }
    Some(Presented { bytes, permit_id, fence, attempt, lease })
}

/// The parts of a key that are left to read.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_first_chunk::<2>()?;
        let (part, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        self.0 = rest;
        std::str::from_utf8(part).ok()
    }
}

impl Presented {
    pub(super) fn permit_id(&self) -> PermitId {
        self.permit_id
    }

    pub(super) fn fence(&self) -> Version {
        self.fence
    }

    fn key_parts(&self) -> Parts<'_> {
        Parts(self.bytes.get(HEAD_BYTES..).unwrap_or_default())
    }

    /// Whether the permit is for this key.
    pub(super) fn is_for(&self, key: &Key) -> bool {
        self.key_parts().eq(parts_of(key))
    }

    /// The permit, with its key checked like any other.
    pub(super) fn parts(&self) -> Result<PermitParts, Problem> {
        let mut parts: Vec<&str> = self.key_parts().collect();
        let refused =
            || Problem::invalid("permit is no permit; send the text of a run back exactly as it came");
        let (Some(name), Some(operation)) = (parts.pop(), parts.pop()) else { return Err(refused()) };
        let key = Key::scoped(parts, operation, name).map_err(|_| refused())?;
        // Trimmed on the way, it would be another text for the same permit.
        if !self.is_for(&key) {
            return Err(refused());
        }
        let Self { permit_id, fence, attempt, lease, .. } = *self;
        Ok(PermitParts { key, permit_id, attempt, fence, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(number: u64) -> PermitParts {
        let (a, b) = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number.rotate_left(17));
        let scope = ["acme", "eu ✓", "\"<b>\"", "a/b"];
        let depth = usize::try_from(number % 5).unwrap();
        PermitParts {
            key: Key::scoped(&scope[..depth], &format!("charge{}", a % 7), &format!("order-{a}")).unwrap(),
            permit_id: PermitId::new(u128::from(a) << 64 | u128::from(b)),
            attempt: u32::try_from(number % 1_000).unwrap().saturating_add(1),
            fence: Version::new(a | 1),
            lease: Duration::from_micros((b % 86_400_000_000).max(1)),
        }
    }

    #[test]
    fn a_permit_is_read_back_as_it_was_written() {
        for parts in (0..500).map(any) {
            let text = written(&parts);
            let presented = read(&text).unwrap();
            assert!(presented.is_for(&parts.key));
            assert_eq!(presented.parts().unwrap(), parts);
        }
        let longest = Key::scoped(vec!["s".repeat(512); 8], &"o".repeat(512), &"n".repeat(1_024)).unwrap();
        let text = written(&PermitParts { key: longest.clone(), ..any(1) });
        assert!(text.len() <= TEXT_BYTES_MAX, "{}", text.len());
        assert_eq!(read(&text).unwrap().parts().unwrap().key, longest);
    }

    #[test]
    fn a_permit_that_was_cut_joined_or_changed_is_refused_or_another() {
        let parts = any(3);
        let text = written(&parts);
        let is_refused = |text: &str| read(text).and_then(|presented| presented.parts()).is_err();
        for end in 0..text.len() {
            assert!(is_refused(&text[..end]), "cut at {end}");
        }
        for more in ["A", "AA", "AAAA", "=", " ", "\n", ".", "é"] {
            assert!(is_refused(&format!("{text}{more}")), "{more:?}");
            assert!(is_refused(&format!("{more}{text}")), "{more:?}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'B' { b'C' } else { b'B' };
            let changed = String::from_utf8(bytes).unwrap();
            let read = read(&changed).and_then(|presented| presented.parts());
            assert!(read.is_err() || read.unwrap() != parts, "another text for the same permit: {changed}");
        }
    }

    #[test]
    fn garbage_is_refused_without_harm() {
        for text in ["", "p1.", "p1", "p2.AAAA", "p1.!!!!", "p1.AAAA", "null", "p1.\u{0}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
        let mut state = 1_u64;
        for length in 0..2_000 {
            let noise: Vec<u8> = (0..length % 257)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    state.to_be_bytes()[0]
                })
                .collect();
            let text = format!("p1.{}", URL_SAFE_NO_PAD.encode(&noise));
            if let Ok(presented) = read(&text) {
                // Noise may have the shape of a permit; then its key is checked.
                drop(presented.parts());
            }
        }
        assert!(read(&format!("p1.{}", "A".repeat(TEXT_BYTES_MAX))).is_err(), "too long");
    }

    #[test]
    fn a_key_with_room_around_its_parts_is_no_second_text_for_a_permit() {
        let mut bytes = URL_SAFE_NO_PAD.decode(&written(&any(5))[3..]).unwrap();
        bytes.truncate(HEAD_BYTES - 1);
        bytes.push(2);
        for part in ["charge ", "order"] {
            bytes.extend_from_slice(&u16::try_from(part.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        let text = format!("p1.{}", URL_SAFE_NO_PAD.encode(&bytes));
        assert!(read(&text).unwrap().parts().is_err());
    }
}
