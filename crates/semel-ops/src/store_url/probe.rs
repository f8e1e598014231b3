//! Small asks that find out whether a store would take a claim.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::{Clock as _, SystemClock, Timestamp};
use semel::machine::claim::{Ask, Probe, Reentry, claim};
use semel::record::{PermitId, Record};
use semel::store::{Store, Swap, SwapReply};
use semel::{Error, ErrorKind, Key, Lapse, RecordId, Result};

/// Lease and retention of the record that is written: it is past its time at once, so no list and no count shows it.
const SHORT: Duration = Duration::from_millis(1);
/// The record of an earlier probe may be in the way, and another process may replace it meanwhile.
const TRIES: usize = 3;

/// Asks for a record that is not there: a store that stopped, or cannot be reached, answers with an error.
pub(super) async fn load(store: &Arc<dyn Store>) -> Result<()> {
    store.load(vec![RecordId::from_bytes([0; 32])]).await.map(drop)
}

/// Writes what a claim writes, always under the same key: a store that is full, read-only or without connections answers
/// with an error. The swap is made here and not by an engine, whose counters would count it as a decision.
pub(super) async fn write(store: &Arc<dyn Store>) -> Result<()> {
    let ask = ask()?;
    let (mut found, mut now): (Option<Arc<Record>>, _) = (None, Timestamp::from_micros(1));
    for _ in 0..TRIES {
        let Some(write) = claim(found.as_deref(), &ask, now).write else {
            // Another process wrote it less than a millisecond ago.
            return Ok(());
        };
        let expected = found.as_ref().map(|record| record.version);
        let answer = store.swap([Swap { expected, next: write.next, keep: write.keep }].into()).await?;
        now = answer.now;
        match answer.value.into_iter().next() {
            Some(SwapReply::Stale(current)) => found = current,
            Some(SwapReply::Full) => {
                return Err(Error::new(ErrorKind::Full, "the store is full; make room"));
            }
            Some(SwapReply::Refused(why) | SwapReply::Damaged(why)) => return Err(why),
            Some(SwapReply::Swapped(_)) | None => return Ok(()),
        }
    }
    // Other processes write the same record: the store takes writes.
    Ok(())
}

fn ask() -> Result<Ask> {
    Ok(Ask {
        key: Key::new("semel.readyz", "probe")?,
        fingerprint: None,
        label: None,
        // Another one for each probe, so that none finds the run of the one before to be its own.
        permit_id: PermitId::new(u128::from(SystemClock::new().now().as_micros())),
        owner: "readyz".into(),
        reentry: Reentry::Refused,
        lease: SHORT,
        retention: SHORT,
        lapse: Lapse::Rerun,
        attempts_max: None,
        first_event: None,
        probe: Probe::None,
    })
}

#[cfg(test)]
mod tests {
    use semel::store::{Filter, MemoryStore};
    use semel::{Claim, Semel};
    use semel_testkit::ManualClock;

    use super::*;
    use crate::lookup::walk::Walk;

    #[tokio::test]
    async fn a_full_store_passes_a_load_and_fails_a_write() {
        let clock = ManualClock::at(1_000_000_000_000);
        let full: Arc<dyn Store> =
            Arc::new(MemoryStore::builder().clock(clock.clone()).records_max(1).build());
        let semel = Semel::builder_shared(Arc::clone(&full)).no_sweep().build().expect("is an engine");
        write(&full).await.expect("has room");
        clock.advance(Duration::from_secs(1));
        drop(semel.claim(Claim::new(&Key::new("charge", "order").expect("is a key"))).await);
        load(&full).await.expect("answers");
        assert_eq!(write(&full).await.expect_err("is full").kind(), ErrorKind::Full);
    }

    #[tokio::test]
    async fn a_probe_may_be_repeated_and_no_list_shows_its_record() {
        let clock = ManualClock::at(1_000_000_000_000);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
        for _ in 0..3 {
            write(&store).await.expect("takes writes");
            clock.advance(Duration::from_secs(1));
        }
        let mut walk = Walk::new(&*store, Filter::default(), None);
        while let Some(page) = walk.next().await.expect("is read") {
            assert!(page.records.is_empty(), "{:?}", page.records);
        }
    }
}
