//! Promises of a sweep. Others may sweep the same store meanwhile, so a count is tried more than once.

use semel::record::{Keep, Record};
use semel::store::Store;

use super::trial::{Broken, promised};
use super::trial::{LONG, SHORT, Trial};

/// How often a count is tried that another sweeper may have spoilt.
const TRIES: usize = 20;
/// How many records a try leaves behind.
const RECORDS: usize = 8;

/// What is past its keep is removed, and counted.
pub async fn sweep_removes_what_is_past_its_keep(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut removed = 0;
    for _ in 0..TRIES {
        let records = expired(trial).await?;
        removed = trial.sweep_all(64).await?;
        for record in &records {
            let found = trial.load(record.key.id()).await?;
            promised!(found.is_none(), "what is past its keep is gone after a sweep", "{found:?}");
        }
        if removed >= records.len() {
            return Ok(());
        }
    }
    Err(Broken::new("a sweep removes what is past its keep", format!("{removed} of {RECORDS} removed")))
}

/// What is within its keep outlives any number of sweeps.
pub async fn sweep_spares_what_is_within_its_keep(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let lasting = trial.put_new("within", LONG).await?;
    expired(trial).await?;
    trial.sweep_all(64).await?;
    let found = trial.load(lasting.key.id()).await?;
    promised!(found.as_ref() == Some(&lasting), "a sweep spares what is within its keep", "{found:?}");
    Ok(())
}

/// What is kept for ever outlives any number of sweeps.
pub async fn sweep_spares_what_is_kept_for_ever(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let kept = trial.put_new("for-ever", Keep::Forever).await?;
    expired(trial).await?;
    trial.sweep_all(64).await?;
    let found = trial.load(kept.key.id()).await?;
    promised!(found.as_ref() == Some(&kept), "a sweep spares what is kept for ever", "{found:?}");
    Ok(())
}

/// A sweep removes no more records than its limit says.
pub async fn sweep_respects_its_limit(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    for limit in [1, 3, RECORDS - 1] {
        expired(trial).await?;
        let swept = store.sweep(limit).await?.value;
        promised!(swept.removed <= limit, "a sweep removes at most its limit", "{swept:?} for {limit}");
    }
    trial.sweep_all(64).await.map(drop)
}

/// A sweep that says that nothing is left left nothing, and sooner or later one says so.
pub async fn more_left_is_honest(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut left = 0;
    for _ in 0..TRIES {
        expired(trial).await?;
        let claimed_empty = !store.sweep(RECORDS / 2).await?.value.more_left;
        left = trial.sweep_all(64).await?;
        if claimed_empty == (left == 0) {
            return Ok(());
        }
    }
    Err(Broken::new(
        "more_left says whether more is past its keep",
        format!("otherwise, and {left} were left"),
    ))
}

/// Some records, all past their keep.
async fn expired(trial: Trial<'_>) -> Result<Vec<Record>, Broken> {
    let mut records = Vec::with_capacity(RECORDS);
    for _ in 0..RECORDS {
        records.push(trial.put_new("expired", Keep::For(SHORT / 4)).await?);
    }
    if let Some(last) = records.last() {
        trial.wait_past(last.changed_at.plus(SHORT / 4)).await?;
    }
    Ok(records)
}
