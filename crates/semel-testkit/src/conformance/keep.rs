//! Promises about how long a record is kept.

use std::sync::Arc;

use std::time::Duration;

use semel::machine::claim::{Claimed, claim};
use semel::record::{Keep, Record};
use semel::store::{Store, SwapReply};

use super::trial::{Broken, promised};
use super::trial::{LONG, SHORT, Trial, rewrite};
use crate::drive::drive;
use crate::sample;

/// A later write with a longer keep outlives the keep before it.
pub async fn a_longer_keep_outlives_the_shorter_before_it(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    for longer in [LONG, Keep::Forever] {
        let (lasting, within) = prolonged(trial, longer).await?;
        trial.outlive(&lasting, within).await?;
        let found = trial.load(lasting.key.id()).await?;
        promised!(found.as_ref() == Some(&lasting), "a longer keep replaces a shorter one", "{found:?}");
    }
    Ok(())
}

/// A record whose keep was made longer before the first one was over, and that first keep.
async fn prolonged(trial: Trial<'_>, longer: Keep) -> Result<(Record, Duration), Broken> {
    // A busy machine may let the first keep pass before the second write; then a longer one is tried.
    for within in [100, 1_000, 5_000].map(Duration::from_millis) {
        let brief = trial.put_new("longer", Keep::For(within)).await?;
        let reply = trial.swap(rewrite(&brief, longer)?).await?;
        match reply {
            SwapReply::Swapped(lasting) => return Ok((Arc::unwrap_or_clone(lasting), within)),
            SwapReply::Stale(None) if trial.now().await? >= brief.changed_at.plus(within) => {}
            SwapReply::Stale(_) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => {
                return Err(Broken::new("a record is there while it is kept", format!("{reply:?}")));
            }
        }
    }
    Err(Broken::new("a store answers within five seconds", "it took longer, three times"))
}

/// A later write with a shorter keep ends the longer one before it.
pub async fn a_shorter_keep_ends_the_longer_before_it(store: &dyn Store) -> Result<(), Broken> {
    ends(store, LONG).await
}

/// A later write with a keep ends one that was for ever.
pub async fn a_keep_ends_one_for_ever_before_it(store: &dyn Store) -> Result<(), Broken> {
    ends(store, Keep::Forever).await
}

async fn ends(store: &dyn Store, longer: Keep) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let lasting = trial.put_new("shorter", longer).await?;
    let brief = trial.write(rewrite(&lasting, Keep::For(SHORT))?).await?;
    trial.outlive(&brief, SHORT).await?;
    let found = trial.load(brief.key.id()).await?;
    promised!(found.is_none(), "a shorter keep replaces a longer one", "{found:?} kept for {longer:?}");
    Ok(())
}

/// A record past its keep, handed back or gone, never stands in the way of a new claim.
pub async fn a_claim_past_the_keep_runs(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    for _ in 0..3 {
        let mut ask = sample::ask(&sample::key("past")?);
        (ask.lease, ask.retention) = (SHORT / 4, SHORT / 4);
        for _ in 0..3 {
            let ran = drive(store, &ask.key, |found, now| claim(found, &ask, now)).await?;
            let record = ran.record.ok_or_else(|| Broken::new("a claim that runs has a record", "none"))?;
            promised!(
                ran.answer == Claimed::Run && record.attempt == 1,
                "a claim past the keep is the first of a new life",
                "{:?} with {record:?}",
                ran.answer
            );
            trial.wait_past(record.changed_at.plus(SHORT / 2)).await?;
            ask.permit_id = sample::permit_id();
        }
        trial.sweep_all(64).await?;
    }
    Ok(())
}
