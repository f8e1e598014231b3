//! Promises about what the store stamps, and what it leaves alone.

use std::sync::atomic::{AtomicU64, Ordering};

use semel::machine::amend::step;
use semel::machine::claim::claim;
use semel::machine::settle::{complete, release, renew};
use semel::record::{Record, Step};
use semel::store::{Scan, Store, Swap};
use semel::{Lapse, Outcome};

use super::trial::{Broken, LONG, Trial, at, at_once, difference, first, promised, rewrite};
use crate::sample;

/// The store fills in every moment and version that a draft leaves open, with its own.
pub async fn the_store_stamps_what_a_draft_leaves_open(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let ask = sample::ask(&sample::key("stamp")?);
    let before = trial.now().await?;
    let running = stamped(trial, at(None, sample::running(&ask)?)).await?;
    let after = trial.now().await?;
    promised!(
        before <= running.changed_at && running.changed_at <= after,
        "changed_at is the store's own now",
        "{} between {before} and {after}",
        running.changed_at
    );
    let outcome = Outcome::success("stamped");
    let now = running.changed_at;
    let released = release(Some(&running), ask.permit_id, "later", now).write;
    stamped(trial, at(Some(running.version), sample::written(released)?)).await?;

    let once = sample::ask(&sample::key("stamp")?);
    stamped(trial, at(None, sample::done(&once, &outcome)?)).await?;

    let mut hold = sample::ask(&sample::key("stamp")?);
    hold.lapse = Lapse::Hold;
    let running = stamped(trial, at(None, sample::running(&hold)?)).await?;
    let lapsed = claim(Some(&running), &sample::ask(&hold.key), running.changed_at.plus(hold.lease)).write;
    stamped(trial, at(Some(running.version), sample::written(lapsed)?)).await?;
    Ok(())
}

/// What a draft has stamped already stays: a write that decides nothing moves no deadline and no fence.
pub async fn what_is_stamped_already_stays(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let ask = sample::ask(&sample::key("stays")?);
    let granted = stamped(trial, at(None, sample::running(&ask)?)).await?;
    trial.wait_past(granted.changed_at).await?;
    let counted = stamped(trial, rewrite(&granted, LONG)?).await?;
    promised!(
        counted.first_seen_at == granted.first_seen_at && counted.state == granted.state,
        "a count extends no lease and moves no fence",
        "{granted:?}, then {counted:?}"
    );
    let noted = Step { name: "one".into(), value: (*b"1").into() };
    let now = counted.changed_at;
    let write = sample::written(step(Some(&counted), ask.permit_id, &noted, now).write)?;
    let stepped = stamped(trial, at(Some(counted.version), write)).await?;
    trial.wait_past(stepped.changed_at).await?;
    let write = sample::written(renew(Some(&stepped), ask.permit_id, ask.lease, now).write)?;
    let renewed = stamped(trial, at(Some(stepped.version), write)).await?;
    let outcome = Outcome::success("");
    let write = sample::written(complete(Some(&renewed), ask.permit_id, &outcome, now).write)?;
    let done = stamped(trial, at(Some(renewed.version), write)).await?;
    trial.wait_past(done.changed_at).await?;
    let counted = stamped(trial, rewrite(&done, LONG)?).await?;
    promised!(counted.state == done.state, "retention does not slide", "{done:?}, then {counted:?}");
    promised!(
        counted.state.grant().fence == granted.version && counted.first_seen_at == granted.first_seen_at,
        "fence and first_seen_at last as long as the record",
        "{granted:?} became {counted:?}"
    );
    Ok(())
}

/// Swaps, and compares what is handed back and then loaded with what the draft says a store must keep.
pub(super) async fn stamped(trial: Trial<'_>, swap: Swap) -> Result<Record, Broken> {
    let draft = swap.next.clone();
    let record = trial.write(swap).await?;
    let expected = draft.stamp(record.version, record.changed_at);
    promised!(record == *expected, "the record is the draft, stamped", "{}", difference(&record, &expected));
    let found = trial.load(record.key.id()).await?;
    let found = found.ok_or_else(|| Broken::new("load gives what swap gave", "nothing"))?;
    promised!(found == *expected, "load gives what swap gave", "{}", difference(&found, &expected));
    Ok(record)
}

/// The now of an answer is never earlier than the now of an answer before it.
pub async fn now_never_runs_backwards(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut record = trial.put_new("clock", LONG).await?;
    let mut last = trial.now().await?;
    for _ in 0..50 {
        let swapped = store.swap([rewrite(&record, LONG)?].into()).await?;
        let loaded = store.load(vec![record.key.id()]).await?;
        let swept = store.sweep(1).await?;
        let scanned = store.scan(Scan { limit: 1, ..Scan::default() }).await?;
        for now in [swapped.now, loaded.now, swept.now, scanned.now] {
            promised!(now >= last, "now never runs backwards", "{now} after {last}");
            last = now;
        }
        record = loaded.record()?.unwrap_or(record);
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
        let swapped = store.swap([swap.clone()].into()).await?;
        let loaded = store.load(vec![id]).await?;
        let loaded_at = loaded.now;
        let record = loaded.record()?;
        let record = record.ok_or_else(|| Broken::new("what was swapped in is loaded", "nothing"))?;
        for now in [swapped.now, loaded_at] {
            promised!(
                record.changed_at <= now && record.first_seen_at <= now,
                "now is never before what the answer speaks of",
                "{now} with {record:?}"
            );
        }
    }
    Ok(())
}
