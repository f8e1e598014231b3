//! One record for each fixture, and the envelope as its own description says it is built.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, Held, HoldReason, Mismatches, PermitId, Record,
    Released, Running, State, Step, Version,
};
use semel::{Fingerprint, Key, Lapse, Outcome, OutcomeKind};
use serde_json::json;

/// One record for each shape that only format 2 can hold.
pub(super) fn samples_2() -> Vec<(&'static str, Record)> {
    let grant = Grant {
        permit_id: PermitId::new(0xfeed),
        owner: "worker-2".into(),
        fence: Version::new(40),
        granted_at: at(1_500),
    };
    let past = |number: u32, end, reason: &str| EndedAttempt {
        number,
        owner: "worker-1".into(),
        from: at(1_000),
        until: at(1_400),
        end,
        reason: reason.into(),
    };
    let ends = [AttemptEnd::Completed, AttemptEnd::Released, AttemptEnd::Lapsed, AttemptEnd::Held];
    let past_attempts: Vec<_> =
        ends.into_iter().cycle().zip(1..=7).map(|(end, number)| past(number, end, "why")).collect();
    let base = Record { label: Some("POST /charges".into()), past_attempts, ..minimal() };
    let held = |reason| {
        let (held_at, probed_at) = (at(2_000), Some(at(2_500)));
        State::Held(Held { grant: grant.clone(), held_at, reason, probed_at, steps: Vec::new() })
    };
    let outcome = Outcome::new(OutcomeKind::Other("success".into()), "paid")
        .reference("charge", "ch_1")
        .reference("charge", "ch_2")
        .details(&json!({}));
    let (settled_at, steps) = (at(2_000), Vec::new());
    let released = Released { grant: grant.clone(), settled_at, reason: "declined".into(), steps };
    vec![
        (
            "done",
            Record { state: State::Done(Done { grant: grant.clone(), settled_at, outcome }), ..base.clone() },
        ),
        ("released", Record { state: State::Released(released), ..base.clone() }),
        ("held after a lapse", Record { state: held(HoldReason::Lapsed), ..base.clone() }),
        ("held for its attempts", Record { state: held(HoldReason::Attempts), ..base.clone() }),
        ("held by its run", Record { state: held(HoldReason::Unknown("lapsed".into())), ..base }),
    ]
}

/// Name, bytes of format 1 as hex text, and the record that they hold.
pub(super) fn samples() -> Vec<(&'static str, Vec<u8>, Record)> {
    vec![
        ("minimal", hex(include_str!("../fixtures/v1/minimal.hex")), minimal()),
        ("running", hex(include_str!("../fixtures/v1/running.hex")), running()),
        ("done", hex(include_str!("../fixtures/v1/done.hex")), done()),
        ("failure", hex(include_str!("../fixtures/v1/failure.hex")), failure()),
        ("released", hex(include_str!("../fixtures/v1/released.hex")), released()),
        ("held", hex(include_str!("../fixtures/v1/held.hex")), held()),
    ]
}

/// The bytes in a hex text, whose lines end in a comment.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.lines().filter_map(|line| line.split('#').next()).map(str::trim).collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// A payload in an envelope of this format version, with the length and checksum that belong to it.
pub(super) fn sealed(version: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut bytes = [b"SEML".as_slice(), &[version], &length.to_le_bytes(), payload].concat();
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The payload of an encoded record.
pub(super) fn payload(bytes: &[u8]) -> &[u8] {
    &bytes[9..bytes.len() - 4]
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(super) fn minimal() -> Record {
    Record {
        key: Key::new("o", "n").unwrap(),
        fingerprint: None,
        label: None,
        state: State::Released(Released {
            grant: Grant::forgotten(at(1)),
            settled_at: at(1),
            reason: "".into(),
            steps: Vec::new(),
        }),
        attempt: 1,
        attempts_forgiven: 0,
        past_attempts: Vec::new(),
        lapse: Lapse::Rerun,
        retention: Duration::from_micros(1),
        first_seen_at: at(1),
        changed_at: at(1),
        first_event: None,
        mismatches: Mismatches::default(),
        duplicates: Duplicates::default(),
        version: Version::new(1),
    }
}

fn running() -> Record {
    let fingerprint: Vec<u8> = (0..32).collect();
    Record {
        key: Key::scoped(["acme", "eu"], "charge", "order-1042").unwrap(),
        fingerprint: Some(Fingerprint::from_bytes(fingerprint.try_into().unwrap())),
        state: State::Running(Running {
            grant: Grant {
                permit_id: PermitId::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677),
                owner: "worker-1".into(),
                fence: Version::new(299),
                granted_at: at(1_760_000_000_250_000),
            },
            leased_at: at(1_760_000_000_500_000),
            lease: Duration::from_mins(1),
            steps: vec![
                Step { name: "reserve".into(), value: (*b"r-1").into() },
                Step { name: "charge".into(), value: [0, 0xff].into() },
            ],
        }),
        attempt: 2,
        attempts_forgiven: 1,
        lapse: Lapse::Hold,
        retention: Duration::from_hours(24),
        first_seen_at: at(1_760_000_000_000_000),
        changed_at: at(1_760_000_000_500_000),
        mismatches: Mismatches {
            count: 3,
            fingerprints: vec![Fingerprint::from_bytes([0xaa; 32]), Fingerprint::from_bytes([0xbb; 32])],
        },
        version: Version::new(300),
        ..minimal()
    }
}

/// Every optional part, and every number at its largest.
pub(super) fn done() -> Record {
    Record {
        key: Key::scoped(["acme"], "charge", "café").unwrap(),
        fingerprint: Some(Fingerprint::from_bytes([0x11; 32])),
        label: None,
        past_attempts: Vec::new(),
        state: State::Done(Done {
            grant: Grant {
                permit_id: PermitId::new(u128::MAX),
                fence: Version::new(u64::MAX),
                ..Grant::forgotten(at(u64::MAX))
            },
            settled_at: at(u64::MAX),
            outcome: Outcome::new(OutcomeKind::Other("skipped".into()), b"\x00\x80\xff paid".as_slice())
                .reference("primary", "pay-1")
                .reference("secondary", "pay-2")
                .details(&json!({"a": [1, null]})),
        }),
        attempt: u32::MAX,
        attempts_forgiven: u32::MAX,
        lapse: Lapse::Rerun,
        retention: Duration::from_micros(u64::MAX),
        first_seen_at: at(u64::MAX),
        changed_at: at(u64::MAX),
        first_event: Some("event-7".into()),
        mismatches: Mismatches {
            count: u64::MAX,
            fingerprints: (1..=8).map(|n| Fingerprint::from_bytes([n; 32])).collect(),
        },
        duplicates: Duplicates { count: u64::MAX, last_seen_at: Some(at(u64::MAX)) },
        version: Version::new(u64::MAX),
    }
}

fn failure() -> Record {
    Record {
        key: Key::new("charge", "order-9").unwrap(),
        state: State::Done(Done {
            grant: Grant { permit_id: PermitId::new(1), fence: Version::new(1), ..Grant::forgotten(at(20)) },
            settled_at: at(20),
            outcome: Outcome::failure(""),
        }),
        retention: Duration::from_millis(1),
        first_seen_at: at(10),
        changed_at: at(20),
        version: Version::new(2),
        ..minimal()
    }
}

fn released() -> Record {
    Record {
        key: Key::new("charge", "order-7").unwrap(),
        state: State::Released(Released {
            grant: Grant::forgotten(at(16_383)),
            settled_at: at(16_383),
            reason: "card declined".into(),
            steps: vec![Step { name: "reserve".into(), value: [].into() }],
        }),
        retention: Duration::from_micros(127),
        first_seen_at: at(128),
        changed_at: at(16_383),
        first_event: Some("".into()),
        mismatches: Mismatches { count: 9, fingerprints: Vec::new() },
        duplicates: Duplicates { count: 16_384, last_seen_at: None },
        version: Version::new(129),
        ..minimal()
    }
}

fn held() -> Record {
    Record {
        key: Key::new("charge", "order-8").unwrap(),
        state: State::Held(Held {
            grant: Grant::forgotten(at(2_000)),
            held_at: at(2_000),
            reason: HoldReason::Lapsed,
            probed_at: None,
            steps: Vec::new(),
        }),
        attempt: 5,
        attempts_forgiven: 4,
        lapse: Lapse::Hold,
        retention: Duration::from_hours(1),
        first_seen_at: at(1_000),
        changed_at: at(3_000),
        duplicates: Duplicates { count: 2, last_seen_at: Some(at(2_500)) },
        version: Version::new(12),
        ..minimal()
    }
}
