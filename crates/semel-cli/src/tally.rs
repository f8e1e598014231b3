//! What a walk through a whole store counted.

use std::time::Duration;

use anyhow::Result;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
use semel_ops::lookup::Counted;
use semel_ops::lookup::walk::Walk;
use serde_json::{Value, json};

use crate::keys::words;
use crate::terminal::bar::Bar;
use crate::terminal::moment::rfc3339;
use crate::terminal::stopwatch::Stopwatch;

/// Counts everything there is.
pub(crate) async fn of(store: &dyn Store) -> Result<Counted> {
    let (mut counted, watch, bar) = (Counted::default(), Stopwatch::start(), Bar::of_ids("counting"));
    let mut walk = Walk::new(store, Filter::default(), None);
    while let Some(page) = walk.next().await? {
        counted.past = counted.past.saturating_add(page.past as u64);
        for record in &page.records {
            counted.add(record, page.now, 1);
        }
        counted.as_of = Some(page.now);
        bar.walked(walk.after(), counted.records());
    }
    counted.took = watch.elapsed();
    Ok(counted)
}

/// For scripts.
pub(crate) fn json(counted: &Counted) -> Value {
    let oldest = |records: &[Record]| records.first().map(|record| oldest_json(counted, record));
    json!({
        "records": counted.records(),
        "running": counted.running,
        "done": counted.done,
        "released": counted.released,
        "held": counted.held,
        "lapsed_leases": counted.lapsed,
        "past_retention": counted.past,
        "outcome_bytes": counted.outcome_bytes,
        "duplicates": counted.duplicates,
        "mismatches": counted.mismatches,
        "oldest_running": oldest(&counted.oldest_running),
        "oldest_held": oldest(&counted.oldest_held),
        "took_ms": millis(counted.took),
    })
}

/// For how long a record has been in its state.
pub(crate) fn age(counted: &Counted, record: &Record) -> Duration {
    counted.as_of.unwrap_or_else(|| Timestamp::from_micros(0)).since(words::since(record))
}

fn oldest_json(counted: &Counted, record: &Record) -> Value {
    let key = &record.key;
    json!({
        "id": key.id().to_string(),
        "scope": key.scope().collect::<Vec<_>>(),
        "operation": key.operation(),
        "name": key.name(),
        "since": rfc3339(words::since(record)),
        "age_ms": millis(age(counted, record)),
    })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
