//! Promises about the store's own now.

use std::sync::atomic::{AtomicU64, Ordering};

use semel::store::{Scan, Store};

use super::trial::{Broken, promised};
use super::trial::{LONG, Trial, at_once, first, rewrite};
use crate::sample;

/// The now of an answer is never earlier than the now of an answer before it.
pub async fn now_never_runs_backwards(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut record = trial.put_new("clock", LONG).await?;
    let mut last = trial.now().await?;
    for _ in 0..50 {
        let swapped = store.swap(vec![rewrite(&record, LONG)?]).await?;
        let loaded = store.load(vec![record.key.id()]).await?;
        let swept = store.sweep(1).await?;
        let scanned = store.scan(Scan { limit: 1, ..Scan::default() }).await?;
        for now in [swapped.now, loaded.now, swept.now, scanned.now] {
            promised!(now >= last, "now never runs backwards", "{now} after {last}");
            last = now;
        }
        record = loaded.value.into_iter().next().flatten().unwrap_or(record);
    }
    let latest = AtomicU64::new(last.as_micros());
    at_once((0..4).map(|_| now_never_behind(trial, &latest)).collect())?.into_iter().collect()
}

/// What one caller was told binds what every other is told later.
async fn now_never_behind(trial: Trial<'_>, latest: &AtomicU64) -> Result<(), Broken> {
    for _ in 0..100 {
        let before = latest.load(Ordering::SeqCst);
        let now = trial.now().await?;
        promised!(now.as_micros() >= before, "now never runs backwards", "{now} after {before} elsewhere");
        latest.fetch_max(now.as_micros(), Ordering::SeqCst);
    }
    Ok(())
}

/// The now of an answer is never before a moment in the records that it hands back.
pub async fn now_is_never_before_what_it_speaks_of(store: &dyn Store) -> Result<(), Broken> {
    let swap = first(&sample::key("moment")?, LONG)?;
    let id = swap.id();
    for _ in 0..20 {
        let swapped = store.swap(vec![swap.clone()]).await?;
        let loaded = store.load(vec![id]).await?;
        let record = loaded.value.into_iter().next().flatten();
        let record = record.ok_or_else(|| Broken::new("what was swapped in is loaded", "nothing"))?;
        for now in [swapped.now, loaded.now] {
            promised!(
                record.changed_at <= now && record.first_seen_at <= now,
                "now is never before what the answer speaks of",
                "{now} with {record:?}"
            );
        }
    }
    Ok(())
}
