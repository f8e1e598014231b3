//! One byte at a time. `SEMEL_FLIPS=all` flips all of a log of 1 MiB, `SEMEL_FLIPS=7` every seventh; else some of a
//! smaller log are flipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use semel::store::Store;

use super::log::{Ending, Log};
use super::verdict::{Seen, judge, judge_refusal};
use crate::dice::Dice;
use crate::disk::{SimulatedDisk, Syncs};
use crate::scale::failures;
use crate::sync::ready;

/// How much is flipped: the size of the log, and every which byte of it.
struct Scale {
    log_bytes: usize,
    stride: usize,
}

fn scale() -> Scale {
    let log_bytes = 1 << 20;
    match std::env::var("SEMEL_FLIPS").as_deref() {
        Ok("all") => Scale { log_bytes, stride: 1 },
        Ok(stride) => Scale { log_bytes, stride: stride.parse().expect("`all`, or every which byte") },
        Err(_) => Scale { log_bytes: 128 << 10, stride: 97 },
    }
}

/// Every place of a disk that is damaged: file, name, offset.
fn places(log: &Log, stride: usize) -> Vec<(usize, String, usize)> {
    let all = log.image.names().flat_map(|(name, file)| {
        (0..log.image.bytes(file).len()).map(move |offset| (file, name.clone(), offset))
    });
    all.step_by(stride).collect()
}

/// Flips every place and counts what was seen.
fn flip_all(
    log: &Log,
    stride: usize,
    mask: impl Fn(u64) -> u8 + Sync,
    look: impl Fn(&Log, &SimulatedDisk, &str) -> Result<Seen, String> + Sync,
) -> Vec<String> {
    let places = places(log, stride);
    let counts = Mutex::new([0_u64; 4]);
    let failures = failures(places.len() as u64, |number| {
        let (file, name, offset) = &places[usize::try_from(number).unwrap()];
        let image = log.image.flipped(*file, *offset, mask(number));
        let disk = SimulatedDisk::holding(image, Syncs::Honest);
        let seen = catch_unwind(AssertUnwindSafe(|| look(log, &disk, name)))
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
            .map_err(|what| format!("{name} at {offset}: {what}"))?;
        counts.lock().unwrap()[seen as usize] += 1;
        if number > 0 && number.is_multiple_of(100_000) {
            println!("{number} flips so far");
        }
        Ok(())
    });
    let [refused, damaged, whole, without_tail] = counts.into_inner().unwrap();
    println!(
        "{:?}, {} flips: {refused} refused, {damaged} with a damaged record, {whole} whole, {without_tail} without the \
         last run, {} failures",
        log.ending,
        places.len(),
        failures.len()
    );
    failures
}

fn opens_or_refuses(log: &Log, disk: &SimulatedDisk, name: &str) -> Result<Seen, String> {
    match log.open(disk) {
        Ok(store) => judge(&store, log),
        Err(error) => judge_refusal(&error, name),
    }
}

/// Sweeps what is over, so that segments are reclaimed and what lasts is moved: damage must not come out as new.
fn reclaims_or_refuses(log: &Log, disk: &SimulatedDisk, name: &str) -> Result<Seen, String> {
    let store = match log.open(disk) {
        Ok(store) => store,
        Err(error) => return judge_refusal(&error, name),
    };
    while ready(store.sweep(64)).is_ok_and(|swept| swept.value.more_left) {}
    let seen = judge(&store, log)?;
    drop(store);
    match log.open(disk) {
        Ok(store) => judge(&store, log),
        // What was seen to be damaged may be found again at another place.
        Err(_) if seen == Seen::Damaged => Ok(Seen::Refused),
        Err(error) => judge_refusal(&error, name),
    }
}

#[test]
fn a_log_that_was_closed_serves_no_wrong_byte_and_hides_no_record() {
    let Scale { log_bytes, stride } = scale();
    let log = Log::of(log_bytes, Ending::Clean);
    let failures = flip_all(&log, stride, |_| 0xff, opens_or_refuses);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_log_that_was_not_closed_serves_no_wrong_byte_and_lacks_its_last_run_at_most() {
    let Scale { log_bytes, stride } = scale();
    let log = Log::of(log_bytes, Ending::PowerCut);
    let failures = flip_all(&log, stride, |_| 0xff, opens_or_refuses);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn one_bit_is_as_bad_as_a_byte() {
    let Scale { log_bytes, stride } = scale();
    for ending in [Ending::Clean, Ending::PowerCut] {
        let log = Log::of(log_bytes, ending);
        let bit = |number| 1 << Dice::new(number).number(0, 7);
        let failures = flip_all(&log, stride * 31, bit, opens_or_refuses);
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

#[test]
fn reclaiming_never_makes_damage_look_sound() {
    let Scale { log_bytes, stride } = scale();
    let mut log = Log::of(log_bytes, Ending::Clean);
    log.pass_a_minute();
    let failures = flip_all(&log, stride * 7, |_| 0xff, reclaims_or_refuses);
    assert!(failures.is_empty(), "{failures:#?}");
}
