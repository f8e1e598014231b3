//! Every shape of a record comes back as it was.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::codec::{decode, encode};
use semel::record::{Done, Duplicates, Grant, Mismatches, PermitId, Record, State, Step, Version};
use semel::{Fingerprint, Key, Lapse, Outcome, OutcomeKind};

use super::samples::{done, minimal, samples, samples_2};

#[test]
fn every_shape_of_a_record_comes_back_as_it_was() {
    let states: Vec<State> = samples().into_iter().map(|(_, _, record)| record.state).collect();
    let mut shapes = 0;
    for state in states {
        for shape in 0..32_u8 {
            let has = |bit: u8| shape & 1 << bit != 0;
            let record = Record {
                fingerprint: has(0).then(|| Fingerprint::from_bytes([9; 32])),
                first_event: has(1).then(|| "event".into()),
                duplicates: Duplicates { count: 3, last_seen_at: has(2).then(|| Timestamp::from_micros(77)) },
                lapse: if has(3) { Lapse::Hold } else { Lapse::Rerun },
                mismatches: if has(4) { done().mismatches } else { Mismatches::default() },
                state: state.clone(),
                ..minimal()
            };
            assert_eq!(decode(&encode(&record).unwrap()).unwrap(), record);
            shapes += 1;
        }
    }
    assert_eq!(shapes, 192);
}

#[test]
fn everything_that_format_2_added_comes_back_as_it_was() {
    for (name, record) in samples_2() {
        assert_eq!(decode(&encode(&record).unwrap()).unwrap(), record, "{name}");
    }
}

#[test]
fn every_shape_of_an_outcome_comes_back_as_it_was() {
    let kinds = [OutcomeKind::Success, OutcomeKind::Failure, OutcomeKind::Other("skipped".into())];
    for (kind, shape) in kinds.iter().flat_map(|kind| (0..8_u8).map(move |shape| (kind, shape))) {
        let mut outcome = Outcome::new(kind.clone(), vec![0xfe; 300]);
        if shape & 1 != 0 {
            outcome = outcome.reference("primary", "first");
        }
        if shape & 2 != 0 {
            outcome = outcome.reference("secondary", "second");
        }
        if shape & 4 != 0 {
            outcome = outcome.details(&serde_json::json!({ "note": "ü" }));
        }
        let settled_at = Timestamp::from_micros(5);
        let grant =
            Grant { permit_id: PermitId::new(7), fence: Version::new(3), ..Grant::forgotten(settled_at) };
        let state = Done { grant, settled_at, outcome };
        let record = Record { state: State::Done(state), ..minimal() };
        assert_eq!(decode(&encode(&record).unwrap()).unwrap(), record);
    }
}

#[test]
fn every_length_of_a_number_comes_back_as_it_was() {
    for bit in 0..u64::BITS {
        for number in [(1 << bit) - 1, 1 << bit, (1 << bit) + 1] {
            let record = Record {
                version: Version::new(number),
                retention: Duration::from_micros(number),
                ..minimal()
            };
            let bytes = encode(&record).unwrap();
            assert_eq!(decode(&bytes).unwrap(), record);
            let groups = (u64::BITS - number.leading_zeros()).div_ceil(7).max(1) as usize;
            assert_eq!(bytes.len(), encode(&minimal()).unwrap().len() + (groups - 1), "{number}");
        }
    }
}

#[test]
fn the_longest_key_and_many_steps_come_back_as_they_were() {
    let steps: Vec<_> =
        (0..300_u16).map(|n| Step { name: n.to_string().into(), value: n.to_le_bytes().into() }).collect();
    let mut record = minimal();
    record.key = Key::scoped(vec!["s".repeat(512); 8], &"o".repeat(512), &"n".repeat(1_024)).unwrap();
    if let State::Released(released) = &mut record.state {
        released.steps = steps;
    }
    assert_eq!(decode(&encode(&record).unwrap()).unwrap(), record);
}
