//! What the numbers must reach.

use super::entry::{Entry, Store};
use super::rounds::Samples;
use crate::report::Bar;

/// Every bar, and whether it is reached.
pub(super) fn judge(samples: &Samples) -> Vec<Bar> {
    let (memory, file) = (Entry::Single(Store::Memory), Entry::Single(Store::File));
    let requests = |entry: Entry, wanted: f64| {
        let times = samples.times(entry, Entry::Echo) * entry.requests_per_cycle();
        Bar::at_least(format!("requests per second, {}", entry.name()), wanted, times, "× bare JSON echo")
    };
    let batches = |store: Store| {
        let (batched, single) = (Entry::Batched(store), Entry::Single(store));
        let times = samples.times(batched, single);
        Bar::at_least(format!("cycles per second, {}", batched.name()), 10.0, times, "× single requests")
    };
    let durable = Entry::Batched(Store::File);
    let redis = samples.times(durable, Entry::Redis);
    vec![
        requests(memory, 0.4),
        requests(file, 0.3),
        batches(Store::Memory),
        batches(Store::File),
        Bar::at_least(
            format!("cycles per second, {}", durable.name()),
            0.5,
            redis,
            "× Redis, SET NX, no durability",
        ),
    ]
}
