//! The clock that a test moves by hand.

use std::time::Duration;

use semel::clock::{Clock, Timestamp};
use semel_testkit::ManualClock;

#[test]
fn a_manual_clock_moves_only_when_told_and_never_backwards() {
    let clock = ManualClock::at(10);
    let shared = clock.clone();
    assert_eq!(clock.now(), Timestamp::from_micros(10));
    shared.advance(Duration::from_micros(5));
    assert_eq!(clock.now(), Timestamp::from_micros(15));
    shared.set(Timestamp::from_micros(12));
    assert_eq!(clock.now(), Timestamp::from_micros(15));
    shared.set(Timestamp::from_micros(20));
    assert_eq!(clock.now(), Timestamp::from_micros(20));
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Timestamp::from_micros(u64::MAX));
}

#[test]
fn no_manual_clock_reads_zero() {
    assert_eq!(ManualClock::at(0).now(), Timestamp::from_micros(1));
}
