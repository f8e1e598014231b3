//! The faults of a swap.

use std::sync::Arc;

use semel::machine::amend::count_duplicates;
use semel::record::{Duplicates, Record, Version};
use semel::store::{Store, Swap, SwapReply};
use semel::{Error, ErrorKind, RecordId, Result};

use super::fault::SwapFault;
use super::store::Tampered;

/// Swaps a batch with this fault.
pub(super) async fn all(store: &Tampered, fault: SwapFault, batch: Vec<Swap>) -> Result<Vec<SwapReply>> {
    match fault {
        SwapFault::AllOrNothing => all_or_nothing(store, batch).await,
        SwapFault::CheckedUpFront => checked_up_front(store, batch).await,
        SwapFault::LockedAsNamed => locked_as_named(store, batch).await,
        SwapFault::Reversed => {
            let mut replies = store.inner.swap(batch.into()).await?.value.into_vec();
            replies.reverse();
            Ok(replies)
        }
        SwapFault::EmptyRefused if batch.is_empty() => {
            Err(Error::new(ErrorKind::Invalid, "the batch is empty; leave it out"))
        }
        SwapFault::Dropped
        | SwapFault::AbsentAnyway
        | SwapFault::PresentAnyway
        | SwapFault::StaleCounted
        | SwapFault::StaleKept
        | SwapFault::StaleBlind
        | SwapFault::StaleFlattered
        | SwapFault::CheckedThenSet
        | SwapFault::EmptyRefused
        | SwapFault::NeverAgain => {
            let mut replies = Vec::with_capacity(batch.len());
            for swap in batch {
                replies.push(one(store, fault, swap).await?);
            }
            Ok(replies)
        }
    }
}

async fn one(store: &Tampered, fault: SwapFault, mut swap: Swap) -> Result<SwapReply> {
    let id = swap.id();
    let current = store.current(id).await?;
    let stale = version(current.as_ref()) != swap.expected;
    match (fault, &current) {
        (SwapFault::Dropped, Some(found)) if !stale => {
            let version = Version::new(found.version.get() + 1);
            return Ok(SwapReply::Swapped(swap.next.stamp(version, found.changed_at)));
        }
        (SwapFault::AbsentAnyway, None) => swap.expected = None,
        (SwapFault::PresentAnyway, Some(found)) => swap.expected = Some(found.version),
        (SwapFault::StaleCounted, Some(_)) if stale => {
            count(store, id).await?;
        }
        (SwapFault::StaleKept, Some(found)) if stale => {
            keep_anew(store, found, &swap).await?;
        }
        (SwapFault::StaleBlind, Some(_)) if stale => return Ok(SwapReply::Stale(None)),
        (SwapFault::StaleFlattered, None) if stale => {
            let now = store.inner.load(Vec::new()).await?.now;
            return Ok(SwapReply::Stale(Some(swap.next.stamp(Version::new(1), now))));
        }
        (SwapFault::CheckedThenSet, _) if !stale => {
            dawdle().await;
            return forced(store, swap).await;
        }
        (SwapFault::NeverAgain, None) if !stale && !store.ledger().seen.insert(id) => {
            return Ok(SwapReply::Stale(None));
        }
        _ => {}
    }
    store.swap_one(swap).await
}

async fn all_or_nothing(store: &Tampered, batch: Vec<Swap>) -> Result<Vec<SwapReply>> {
    let found = store.inner.load(batch.iter().map(Swap::id).collect()).await?.records()?;
    if batch.iter().zip(&found).any(|(swap, found)| version(found.as_ref()) != swap.expected) {
        return Ok(found.into_iter().map(|found| SwapReply::Stale(found.map(Arc::new))).collect());
    }
    Ok(store.inner.swap(batch.into()).await?.value.into_vec())
}

async fn checked_up_front(store: &Tampered, batch: Vec<Swap>) -> Result<Vec<SwapReply>> {
    let found = store.inner.load(batch.iter().map(Swap::id).collect()).await?.records()?;
    let mut replies = Vec::with_capacity(batch.len());
    for (swap, found) in batch.into_iter().zip(found) {
        let stale = version(found.as_ref()) != swap.expected;
        replies.push(if stale { SwapReply::Stale(found.map(Arc::new)) } else { forced(store, swap).await? });
    }
    Ok(replies)
}

async fn locked_as_named(store: &Tampered, batch: Vec<Swap>) -> Result<Vec<SwapReply>> {
    let mut held = Vec::with_capacity(batch.len());
    for swap in &batch {
        let lock = Arc::clone(store.ledger().locks.entry(swap.id()).or_default());
        held.push(lock.lock_owned().await);
        dawdle().await;
    }
    Ok(store.inner.swap(batch.into()).await?.value.into_vec())
}

/// Writes whatever the record is at.
async fn forced(store: &Tampered, mut swap: Swap) -> Result<SwapReply> {
    loop {
        swap.expected = version(store.current(swap.id()).await?.as_ref());
        let reply = store.swap_one(swap.clone()).await?;
        if let SwapReply::Swapped(_) = reply {
            return Ok(reply);
        }
    }
}

/// Counts a duplicate on the record, if there is one.
pub(super) async fn count(store: &Tampered, id: RecordId) -> Result<()> {
    let Some(found) = store.current(id).await? else { return Ok(()) };
    let seen = Duplicates { count: 1, last_seen_at: Some(found.changed_at) };
    if let Some(write) = count_duplicates(Some(&found), seen, found.changed_at).write {
        let swap = Swap { expected: Some(found.version), next: write.next, keep: write.keep };
        store.swap_one(swap).await?;
    }
    Ok(())
}

/// Keeps the record for as long as a stale swap wanted.
async fn keep_anew(store: &Tampered, found: &Record, stale: &Swap) -> Result<()> {
    let none = Duplicates::default();
    if let Some(write) = count_duplicates(Some(found), none, found.changed_at).write {
        let swap = Swap { expected: Some(found.version), next: write.next, keep: stale.keep };
        store.swap_one(swap).await?;
    }
    Ok(())
}

/// Time for somebody else, on this thread and on others.
async fn dawdle() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}

fn version(found: Option<&Record>) -> Option<Version> {
    found.map(|record| record.version)
}
