//! Gauges of the whole store, by the last census: set when metrics are scraped.

use semel::metrics::{CENSUS_AGE, OLDEST_HELD, RECORDS};
use semel::record::State;
use semel_ops::lookup::Counted;

use crate::monitoring::Census;

/// Sets them. Before the first census they are `NaN`: neither "none is held" nor an alert would be right.
pub(crate) fn set_from(census: &Census) {
    let (counted, age) = (census.latest(&[]), census.age());
    let known = |value: f64| if age.is_some() { value } else { f64::NAN };
    let states = [
        ("running", counted.running),
        ("lapsed", counted.lapsed),
        ("held", counted.held),
        ("done", counted.done),
        ("released", counted.released),
    ];
    for (state, count) in states {
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 records")]
        metrics::gauge!(RECORDS.name, "state" => state).set(known(count as f64));
    }
    metrics::gauge!(OLDEST_HELD.name).set(known(oldest_held_seconds(&counted)));
    metrics::gauge!(CENSUS_AGE.name).set(age.map_or(f64::NAN, |age| age.as_secs_f64()));
}

/// How long the record has been held that is held for longest; 0 if none is.
fn oldest_held_seconds(counted: &Counted) -> f64 {
    let oldest = counted.oldest_held.first().and_then(|record| match &record.state {
        State::Held(held) => Some(held.held_at),
        State::Running(_) | State::Done(_) | State::Released(_) => None,
    });
    let age = oldest.zip(counted.as_of).map(|(held_at, as_of)| as_of.since(held_at));
    age.map_or(0.0, |age| age.as_secs_f64())
}
