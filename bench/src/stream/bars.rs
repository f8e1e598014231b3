//! What the numbers must reach.

use super::place::Place;
use super::rounds::{Samples, Whose};
use super::window::Kind;
use crate::report::{Bar, grouped};

/// The batch that bars are about.
const BATCH: u64 = 1_000;
/// What a batch must gain over events one by one, where every commit waits for a disk.
const TIMES_SINGLE: f64 = 20.0;
/// What a duplicate must be cheaper than a new event.
const TIMES_NEW: f64 = 5.0;

/// Every bar, and whether it is reached.
pub(super) fn judge(samples: &Samples) -> Vec<Bar> {
    let bar = |one: Whose, other: Whose, wanted: f64, what: &str| {
        Bar::at_least(title(one), wanted, samples.times(one, other), &format!("× {what}"))
    };
    let single = bar(
        (Place::Postgres, BATCH, Kind::New),
        (Place::Postgres, 1, Kind::New),
        TIMES_SINGLE,
        "batches of 1",
    );
    let duplicates = [Place::File, Place::Postgres].map(|place| {
        bar((place, BATCH, Kind::Duplicates), (place, BATCH, Kind::New), TIMES_NEW, "new events")
    });
    [single].into_iter().chain(duplicates).collect()
}

fn title((place, batch, kind): Whose) -> String {
    let what = match kind {
        Kind::New => "new events",
        Kind::Duplicates => "duplicates",
    };
    format!("{}, {what}, batches of {}", place.name(), grouped(batch))
}
