//! Promises to callers at the same time. They run on threads of their own.

use std::sync::Arc;

use semel::store::{Store, Swap, SwapReply};

use super::trial::{Broken, promised};
use super::trial::{LONG, Trial, at_once, first, rewrite};
use crate::sample;

const CALLERS: usize = 16;
const ROUNDS: usize = 50;

/// Of many callers that swap one record at one version at the same time, exactly one wins.
pub async fn of_many_swaps_at_one_version_one_wins(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let key = sample::key("race")?;
    let mut last = None;
    for _ in 0..ROUNDS {
        let swaps: Result<Vec<_>, _> = (0..CALLERS)
            .map(|_| match &last {
                None => first(&key, LONG),
                Some(record) => rewrite(record, LONG),
            })
            .collect();
        let replies = at_once(swaps?.into_iter().map(|swap| trial.swap(swap)).collect())?;
        let won = winners(replies.into_iter().collect::<Result<_, _>>()?);
        let found = trial.load(key.id()).await?;
        promised!(
            won.len() == 1 && won.first() == found.as_ref(),
            "of many swaps at one version exactly one wins, and is what is stored",
            "{} won: {won:?}, stored {found:?}",
            won.len()
        );
        last = found;
    }
    Ok(())
}

/// Batches that overlap in different orders are all answered, and each of their records has one winner.
pub async fn overlapping_batches_are_all_answered(store: &dyn Store) -> Result<(), Broken> {
    for _ in 0..10 {
        let keys: Vec<_> = (0..8).map(|_| sample::key("overlap")).collect::<Result<_, _>>()?;
        let batch = |caller: usize| {
            let mut swaps: Vec<Swap> =
                keys.iter().map(|key| first(key, LONG)).collect::<Result<_, Broken>>()?;
            swaps.rotate_left(caller % keys.len());
            if caller.is_multiple_of(2) {
                swaps.reverse();
            }
            Ok(store.swap(swaps.into()))
        };
        let batches: Vec<_> = (0..CALLERS).map(batch).collect::<Result<_, Broken>>()?;
        let mut replies = Vec::new();
        for answer in at_once(batches)? {
            replies.extend(answer?.value);
        }
        let won = winners(replies);
        for key in &keys {
            let wins = won.iter().filter(|record| record.key == *key).count();
            promised!(wins == 1, "each record of overlapping batches has one winner", "{wins} of {CALLERS}");
        }
    }
    Ok(())
}

fn winners(replies: Vec<SwapReply>) -> Vec<semel::record::Record> {
    replies
        .into_iter()
        .filter_map(|reply| match reply {
            SwapReply::Swapped(record) => Some(Arc::unwrap_or_clone(record)),
            SwapReply::Stale(_) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => None,
        })
        .collect()
}
