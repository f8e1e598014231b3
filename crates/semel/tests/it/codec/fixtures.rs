//! Bytes of every format version that was ever released. They must be decoded for ever: a change that
//! fails here strands the records of everyone who upgrades, so add a version and leave these be.

use semel::codec::{decode, encode};

use super::samples::{payload, samples, sealed};

#[test]
fn records_of_format_version_1_are_read_as_they_were_written() {
    for (name, bytes, record) in samples() {
        assert_eq!(decode(&bytes).unwrap(), record, "{name}");
    }
}

#[test]
fn records_are_written_byte_for_byte_as_format_version_1_was() {
    for (name, bytes, record) in samples() {
        assert_eq!(encode(&record).unwrap(), bytes, "{name}");
    }
}

#[test]
fn the_envelope_is_what_its_description_says() {
    for (name, bytes, _) in samples() {
        assert_eq!(sealed(1, payload(&bytes)), bytes, "{name}");
    }
}
