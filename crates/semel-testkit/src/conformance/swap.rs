//! Promises of a single swap.

use semel::RecordId;
use semel::record::{Keep, Version};
use semel::store::{Scan, Store, Swap, SwapReply};

use super::trial::{Broken, LONG, SHORT, Trial, at, first, promised, rewrite};
use crate::sample;

/// A swap at the version that the record is at replaces it, and the next load shows it.
pub async fn a_swap_at_the_expected_version_replaces(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let old = trial.put_new("replace", LONG).await?;
    let new = trial.write(rewrite(&old, LONG)?).await?;
    let found = trial.load(old.key.id()).await?;
    promised!(new.duplicates.count == 1, "the record handed back is the new one", "{new:?}");
    promised!(found.as_ref() == Some(&new), "a swap replaces the record", "{found:?} instead of {new:?}");
    Ok(())
}

/// A swap that expects a version where there is no record is stale, and makes none.
pub async fn a_swap_of_an_absent_record_must_expect_none(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut swap = first(&sample::key("absent")?, LONG)?;
    let id = swap.id();
    swap.expected = Some(Version::new(1));
    let reply = trial.swap(swap).await?;
    let stale = matches!(reply, SwapReply::Stale(_));
    promised!(stale, "a swap that expects a version is stale where there is no record", "{reply:?}");
    let found = trial.load(id).await?;
    promised!(found.is_none(), "a stale swap makes no record", "{found:?}");
    Ok(())
}

/// A swap of a record that is there is stale unless it expects the version that the record is at.
pub async fn a_swap_of_a_present_record_must_expect_its_version(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let old = trial.put_new("present", LONG).await?;
    let new = trial.write(rewrite(&old, LONG)?).await?;
    let beyond = Version::new(new.version.get() + 1);
    for expected in [None, Some(old.version), Some(beyond)] {
        let mut swap = rewrite(&new, LONG)?;
        swap.expected = expected;
        let reply = trial.swap(swap).await?;
        let stale = matches!(reply, SwapReply::Stale(_));
        promised!(stale, "a swap at any other version is stale", "{reply:?} at {expected:?} for {new:?}");
    }
    Ok(())
}

/// A stale swap leaves the version, the contents and the keep of the record as they were.
pub async fn a_stale_swap_changes_nothing(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let lasting = trial.put_new("stale", LONG).await?;
    let brief = trial.put_new("stale", Keep::For(SHORT)).await?;
    for (record, keep) in [(&lasting, Keep::For(SHORT)), (&brief, LONG)] {
        let mut swap = rewrite(record, keep)?;
        swap.expected = Some(Version::new(record.version.get() + 1));
        trial.swap(swap).await?;
    }
    trial.outlive(&brief, SHORT * 2).await?;
    let found = trial.load(lasting.key.id()).await?;
    promised!(found.as_ref() == Some(&lasting), "a stale swap changes nothing", "{found:?} for {lasting:?}");
    let found = trial.load(brief.key.id()).await?;
    promised!(found.is_none(), "a stale swap does not make a keep longer", "{found:?}");
    Ok(())
}

/// A stale swap hands back the record that won, just as a load shows it.
pub async fn stale_hands_back_the_record_that_won(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let ask = sample::ask(&sample::key("winner")?);
    let write = sample::done(&ask, &semel::Outcome::success(b"\x00the winner\xff".as_slice()))?;
    let won = trial.write(at(None, write)).await?;
    let reply = trial.swap(first(&ask.key, LONG)?).await?;
    let found = trial.load(ask.key.id()).await?;
    let same = matches!(&reply, SwapReply::Stale(Some(current)) if **current == won);
    promised!(
        same && found.as_ref() == Some(&won),
        "stale hands back the record that won, as load does",
        "{reply:?}, and load {found:?}, where {won:?} won"
    );
    Ok(())
}

/// A swap that finds no record where it expected one is told that there is none.
pub async fn stale_against_nothing_hands_back_none(store: &dyn Store) -> Result<(), Broken> {
    let mut swap = first(&sample::key("nothing")?, LONG)?;
    swap.expected = Some(Version::new(u64::from(u32::MAX)));
    let reply = Trial::of(store).swap(swap).await?;
    let none = matches!(reply, SwapReply::Stale(None));
    promised!(none, "stale against nothing hands back none", "{reply:?}");
    Ok(())
}

/// Every write of a record has a greater version than the one before it.
pub async fn versions_grow_with_every_write(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut last = trial.put_new("versions", LONG).await?;
    promised!(last.version > Version::new(0), "versions are numbered from 1", "{last:?}");
    for _ in 0..20 {
        let next = trial.write(rewrite(&last, LONG)?).await?;
        promised!(
            next.version > last.version,
            "every write has a greater version",
            "{last:?}, then {next:?}"
        );
        last = next;
    }
    Ok(())
}

/// A key's version, and with it its fence, also grows over the end of a record's life.
pub async fn versions_grow_over_a_swept_life(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let key = sample::key("lives")?;
    let mut greatest = Version::new(0);
    for _ in 0..3 {
        let mut record = trial.put(&key, LONG).await?;
        promised!(
            record.version > greatest && record.state.grant().fence == record.version,
            "the fence of a new life is its version, greater than any version of the old one",
            "{record:?} after {greatest:?}"
        );
        for keep in [LONG, LONG, Keep::For(SHORT)] {
            record = trial.write(rewrite(&record, keep)?).await?;
        }
        greatest = record.version;
        trial.outlive(&record, SHORT).await?;
        let left = trial.load(key.id()).await?;
        promised!(left.is_none(), "what is past its keep is gone after a sweep", "{left:?}");
    }
    Ok(())
}

/// One stale swap in a batch does not undo the others, wherever it stands.
pub async fn one_stale_swap_does_not_undo_another(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    for stale_at in 0..3 {
        let mut batch = new_swaps(3)?;
        if let Some(swap) = batch.get_mut(stale_at) {
            swap.expected = Some(Version::new(1));
        }
        let ids: Vec<_> = batch.iter().map(Swap::id).collect();
        let replies = store.swap(batch.into()).await?.value;
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
    let replies = store.swap(batch.into()).await?.value;
    promised!(replies.len() == asked.len(), "one answer for each swap", "{} for 9", replies.len());
    for ((id, wins), reply) in asked.into_iter().zip(replies) {
        let fits = match &reply {
            SwapReply::Swapped(record) => wins && record.key.id() == id,
            SwapReply::Stale(None) => !wins,
            SwapReply::Stale(Some(_)) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => {
                false
            }
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
        let replies = store.swap(Vec::from(pair).into()).await?.value;
        let won: Vec<_> = replies
            .iter()
            .filter_map(|reply| match reply {
                SwapReply::Swapped(record) => Some(record),
                SwapReply::Stale(_) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_) => None,
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
    let swapped = store.swap(Vec::new().into()).await?;
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
