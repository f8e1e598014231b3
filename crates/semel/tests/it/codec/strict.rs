//! What is not exactly what the writer writes is refused, whatever the damage.

use std::error::Error as _;

use semel::codec::{decode, encode};
use semel::record::{Record, State};
use semel::{Error, ErrorKind};

use super::samples::{done, minimal, payload, samples, samples_2, sealed};

/// The moment, or span, of one microsecond.
const ONE: [u8; 8] = 1_u64.to_le_bytes();

/// The parts of a minimal payload, to be spoiled one at a time.
struct Parts {
    key: Vec<u8>,
    flags: u8,
    attempt: Vec<u8>,
    kept: Vec<u8>,
    version: Vec<u8>,
    state: Vec<u8>,
}

impl Parts {
    fn minimal() -> Self {
        Self {
            key: b"\x03o\x1fn".into(),
            flags: 0,
            attempt: vec![1],
            kept: vec![0, 0],
            version: vec![1],
            state: [[3].as_slice(), &ONE, &[0, 0]].concat(),
        }
    }

    fn decode(self) -> Result<Record, Error> {
        let Self { key, flags, attempt, kept, version, state } = self;
        let rest = [[0].as_slice(), &ONE, &ONE, &ONE, &kept, &[0], &version, &state].concat();
        decode(&sealed(1, &[key, vec![flags], attempt, rest].concat()))
    }

    /// What is wrong with it, as the error says.
    fn refusal(self) -> String {
        let error = self.decode().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        error.to_string()
    }
}

fn kind(bytes: &[u8]) -> ErrorKind {
    decode(bytes).unwrap_err().kind()
}

#[test]
fn every_truncation_is_refused() {
    for (name, bytes, _) in samples() {
        for length in 0..bytes.len() {
            assert_eq!(kind(&bytes[..length]), ErrorKind::Corrupt, "{name} at {length}");
        }
        // With an envelope that fits what is left, only the payload's own strictness is in the way.
        let payload = payload(&bytes);
        for length in 0..payload.len() {
            assert_eq!(kind(&sealed(1, &payload[..length])), ErrorKind::Corrupt, "{name} at {length}");
        }
    }
}

#[test]
fn every_trailing_byte_is_refused() {
    for (name, bytes, _) in samples() {
        for trailing in 0..=u8::MAX {
            assert_eq!(kind(&[bytes.clone(), vec![trailing]].concat()), ErrorKind::Corrupt, "{name}");
            let longer = [payload(&bytes), &[trailing]].concat();
            assert_eq!(kind(&sealed(1, &longer)), ErrorKind::Corrupt, "{name}");
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for (name, bytes, _) in samples() {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "{name}, bit {bit}");
        }
    }
}

#[test]
fn a_changed_payload_is_refused_or_is_the_one_spelling_of_another_record() {
    let (mut refused, mut accepted) = (0, 0);
    let records = samples().into_iter().map(|(name, _, record)| (name, record)).chain(samples_2());
    for (name, mut record) in records {
        // One fingerprint stands for eight: their bytes mean nothing to the reader.
        record.mismatches.fingerprints.truncate(1);
        let bytes = encode(&record).unwrap();
        let payload = payload(&bytes);
        for (at, value) in (0..payload.len()).flat_map(|at| (0..=u8::MAX).map(move |value| (at, value))) {
            let mut changed = payload.to_vec();
            changed[at] = value;
            let changed = sealed(2, &changed);
            match decode(&changed) {
                Ok(other) => {
                    assert_eq!(encode(&other).unwrap(), changed, "{name}, byte {at} as {value}");
                    assert_eq!(other == record, changed == bytes, "{name}, byte {at} as {value}");
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("changed payloads: {refused} refused, {accepted} accepted");
    assert!(refused > 10_000 && accepted > 10_000);
}

#[test]
fn a_number_has_one_spelling() {
    let version = |bytes: &[u8]| Parts { version: bytes.into(), ..Parts::minimal() };
    let read = |bytes| version(bytes).decode().unwrap().version.get();
    assert_eq!(read(&[0x00]), 0);
    assert_eq!(read(&[0x7f]), 127);
    assert_eq!(read(&[0x80, 0x01]), 128);
    assert_eq!(read(&[0x80, 0x80, 0x01]), 1 << 14);
    assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), u64::MAX);

    assert!(version(&[0x80, 0x00]).refusal().contains("padded"));
    assert!(version(&[0xff, 0x80, 0x00]).refusal().contains("padded"));
    assert!(
        version(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]).refusal().contains("padded")
    );
    assert!(
        version(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02])
            .refusal()
            .contains("too large")
    );
    assert!(version(&[0x80; 11]).refusal().contains("too large"));
    assert!(version(&[0xff; 11]).refusal().contains("too large"));
    let attempt = Parts { attempt: vec![0x80, 0x80, 0x80, 0x80, 0x10], ..Parts::minimal() };
    assert!(attempt.refusal().contains("too large"));
}

#[test]
fn unknown_flags_and_tags_are_refused() {
    for flags in (4..8).map(|bit| 1 << bit) {
        assert!(Parts { flags, ..Parts::minimal() }.refusal().contains("flags"), "{flags}");
    }
    for tag in (0..=u8::MAX).filter(|tag| !(1..=4).contains(tag)) {
        let state = vec![tag, 1, 0, 0];
        assert!(Parts { state, ..Parts::minimal() }.refusal().contains("state"), "{tag}");
    }
    for notes in (3..8).map(|bit| 1 << bit) {
        let state = [[2].as_slice(), &[0; 16], &[1], &ONE, &[0, notes, 0]].concat();
        assert!(Parts { state, ..Parts::minimal() }.refusal().contains("flags"), "{notes}");
    }
}

#[test]
fn an_unknown_kind_of_outcome_is_refused() {
    for kind in 3..=u8::MAX {
        let state = [[2].as_slice(), &[0; 16], &[1], &ONE, &[kind, 0, 0]].concat();
        assert!(Parts { state, ..Parts::minimal() }.refusal().contains("kind"), "{kind}");
    }
}

#[test]
fn more_mismatched_fingerprints_than_can_be_are_refused() {
    let kept = |count: u8, kept: u8| {
        let fingerprints = (0..kept).flat_map(|n| [n; 32]);
        Parts { kept: [count, kept].into_iter().chain(fingerprints).collect(), ..Parts::minimal() }
    };
    assert_eq!(kept(8, 8).decode().unwrap().mismatches.fingerprints.len(), 8);
    assert_eq!(kept(9, 1).decode().unwrap().mismatches.count, 9);
    assert!(kept(9, 9).refusal().contains("mismatched"));
    assert!(kept(100, 9).refusal().contains("mismatched"));
    assert!(kept(1, 2).refusal().contains("mismatched"));
    assert!(kept(0, 1).refusal().contains("mismatched"));
}

#[test]
fn text_that_is_no_utf_8_is_refused_with_its_cause() {
    let state = [[3].as_slice(), &ONE, &[2, 0xc3, 0x28, 0]].concat();
    let error = Parts { state, ..Parts::minimal() }.decode().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("utf-8"), "{cause}");
}

#[test]
fn a_key_that_no_caller_could_have_given_is_refused() {
    let spoiled: [&[u8]; 9] = [
        b"",
        b"o",
        b"\x1fn",
        b"o\x1f",
        b"\x1fo\x1fn",
        b" o\x1fn",
        b"o\x1fn ",
        b"s \x1fo\x1fn",
        b"o\x1fa\x07b",
    ];
    for text in spoiled {
        let length = u8::try_from(text.len()).unwrap();
        let key = [&[length], text].concat();
        assert!(Parts { key, ..Parts::minimal() }.refusal().contains("key"), "{text:?}");
    }
    assert_eq!(Parts::minimal().decode().unwrap().key, minimal().key);
}

#[test]
fn a_length_that_lies_is_refused_and_allocates_nothing() {
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let key = [most.as_slice(), b"o\x1fn"].concat();
    assert!(Parts { key, ..Parts::minimal() }.refusal().contains("cut short"));
    let reason = [[3].as_slice(), &ONE, &most].concat();
    assert!(Parts { state: reason, ..Parts::minimal() }.refusal().contains("cut short"));
    let steps = [[3].as_slice(), &ONE, &[0], &most].concat();
    assert!(Parts { state: steps, ..Parts::minimal() }.refusal().contains("cut short"));

    let mut envelope = encode(&minimal()).unwrap();
    envelope[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(kind(&envelope), ErrorKind::Corrupt);
}

#[test]
fn a_newer_format_is_told_from_damage_and_names_both_versions() {
    let bytes = encode(&done()).unwrap();
    for version in 3..=u8::MAX {
        let error = decode(&sealed(version, payload(&bytes))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Newer);
        assert!(error.to_string().contains(&format!("format {version} is newer")), "{error}");
        assert!(error.to_string().contains("(2)"), "{error}");
    }
    // Nothing behind the version is known of a newer format, not even that there is anything.
    assert_eq!(kind(b"SEML\x03"), ErrorKind::Newer);
    let never_was = decode(&sealed(0, payload(&bytes))).unwrap_err();
    assert_eq!(never_was.kind(), ErrorKind::Corrupt);
    assert!(never_was.to_string().contains("never was"), "{never_was}");
}

#[test]
fn a_wrong_magic_is_refused_before_anything_else_is_read() {
    for at in 0..4 {
        let mut bytes = sealed(2, payload(&encode(&minimal()).unwrap()));
        bytes[at] ^= 0x20;
        assert!(decode(&bytes).unwrap_err().to_string().contains("magic"));
        assert_eq!(kind(&bytes), ErrorKind::Corrupt);
    }
}

#[test]
fn a_done_record_has_no_steps_and_no_lease() {
    let record = decode(&encode(&done()).unwrap()).unwrap();
    assert!(matches!(record.state, State::Done(_)));
    assert!(record.steps().is_empty());
}
