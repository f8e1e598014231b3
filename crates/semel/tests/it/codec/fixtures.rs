//! Bytes of every format version that was ever released. They must be decoded for ever: a change that
//! fails here strands the records of everyone who upgrades, so add a version and leave these be.

use semel::codec::{decode, encode};

use super::samples::{hex, payload, samples, samples_2, sealed};

#[test]
fn records_of_format_version_1_are_read_as_they_were_written() {
    for (name, bytes, record) in samples() {
        assert_eq!(decode(&bytes).unwrap(), record, "{name}");
    }
}

#[test]
fn a_record_that_was_read_from_format_1_is_written_as_format_2_and_means_the_same() {
    for (name, bytes, record) in samples() {
        let written = encode(&decode(&bytes).unwrap()).unwrap();
        assert_eq!(written[4], 2, "{name}");
        assert_eq!(decode(&written).unwrap(), record, "{name}");
    }
}

#[test]
fn records_of_format_version_2_are_read_and_written_byte_for_byte_as_they_were() {
    let stored = [
        include_str!("../fixtures/v2/done.hex"),
        include_str!("../fixtures/v2/released.hex"),
        include_str!("../fixtures/v2/held-lapsed.hex"),
        include_str!("../fixtures/v2/held-attempts.hex"),
        include_str!("../fixtures/v2/held-unknown.hex"),
    ];
    for ((name, record), stored) in samples_2().into_iter().zip(stored) {
        let bytes = hex(stored);
        assert_eq!(decode(&bytes).unwrap(), record, "{name}");
        assert_eq!(encode(&record).unwrap(), bytes, "{name}");
    }
}

#[test]
fn the_envelope_is_what_its_description_says() {
    for (name, bytes, _) in samples() {
        assert_eq!(sealed(1, payload(&bytes)), bytes, "{name}");
    }
}
