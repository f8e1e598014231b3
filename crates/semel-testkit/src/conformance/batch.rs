//! Promises of a batch of swaps.

use semel::RecordId;
use semel::record::Version;
use semel::store::{Scan, Store, Swap, SwapReply};

use super::trial::{Broken, promised};
use super::trial::{LONG, Trial, first, rewrite};
use crate::sample;

/// One stale swap in a batch does not undo the others, wherever it stands.
pub async fn one_stale_swap_does_not_undo_another(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    for stale_at in 0..3 {
        let mut batch = new_swaps(3)?;
        if let Some(swap) = batch.get_mut(stale_at) {
            swap.expected = Some(Version::new(1));
        }
        let ids: Vec<_> = batch.iter().map(Swap::id).collect();
        let replies = store.swap(batch).await?.value;
        for (at, id) in ids.into_iter().enumerate() {
            let stored = trial.load(id).await?.is_some();
            promised!(
                stored == (at != stale_at),
                "the swaps of a batch are independent",
                "swap {at} of a batch whose swap {stale_at} is stale: {:?}, stored: {stored}",
                replies.get(at)
            );
        }
    }
    Ok(())
}

/// A batch is answered in the order of its swaps, one answer for each.
pub async fn swaps_are_answered_in_their_order(store: &dyn Store) -> Result<(), Broken> {
    let mut batch = new_swaps(9)?;
    for swap in batch.iter_mut().step_by(3) {
        swap.expected = Some(Version::new(1));
    }
    let asked: Vec<_> = batch.iter().map(|swap| (swap.id(), swap.expected.is_none())).collect();
    let replies = store.swap(batch).await?.value;
    promised!(replies.len() == asked.len(), "one answer for each swap", "{} for 9", replies.len());
    for ((id, wins), reply) in asked.into_iter().zip(replies) {
        let fits = match &reply {
            SwapReply::Swapped(record) => wins && record.key.id() == id,
            SwapReply::Stale(None) => !wins,
            SwapReply::Stale(Some(_)) | SwapReply::Full => false,
        };
        promised!(fits, "answers come in the order of the swaps", "{reply:?} to the swap of {id:?}");
    }
    Ok(())
}

/// Of two swaps of one record in a batch, at the same version, one wins and the other is stale.
pub async fn of_two_swaps_of_one_record_one_wins(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let key = sample::key("twice")?;
    let record = trial.put_new("twice", LONG).await?;
    let pairs =
        [[first(&key, LONG)?, first(&key, LONG)?], [rewrite(&record, LONG)?, rewrite(&record, LONG)?]];
    for pair in pairs {
        let id: RecordId = pair[0].id();
        let replies = store.swap(pair.into()).await?.value;
        let won: Vec<_> = replies
            .iter()
            .filter_map(|reply| match reply {
                SwapReply::Swapped(record) => Some(record),
                SwapReply::Stale(_) | SwapReply::Full => None,
            })
            .collect();
        let found = trial.load(id).await?;
        promised!(
            won.len() == 1 && won.first().map(|record| &***record) == found.as_ref(),
            "of two swaps of one record in a batch one wins, and is what is stored",
            "{replies:?}, stored {found:?}"
        );
    }
    Ok(())
}

/// An empty batch is answered by an empty answer that carries the store's now.
pub async fn an_empty_batch_is_answered(store: &dyn Store) -> Result<(), Broken> {
    let swapped = store.swap(Vec::new()).await?;
    promised!(swapped.value.is_empty(), "no swaps, no answers", "{:?}", swapped.value);
    let loaded = store.load(Vec::new()).await?;
    promised!(loaded.value.is_empty(), "no ids, no answers", "{:?}", loaded.value);
    let page = store.scan(Scan { limit: 0, ..Scan::default() }).await?.value;
    promised!(page.records.is_empty(), "a page of none holds none", "{:?}", page.records);
    let swept = store.sweep(0).await?.value;
    promised!(swept.removed == 0, "a sweep of none removes none", "{swept:?}");
    Ok(())
}

fn new_swaps(count: usize) -> Result<Vec<Swap>, Broken> {
    (0..count).map(|_| first(&sample::key("batch")?, LONG)).collect()
}
