//! What the server holds at the end, against what callers were told: whoever is quick because it does less fails here.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use semel::record::StateWord;
use semel::store::{Scan, Store};
use tokio::runtime::Runtime;

use super::entry::Entry;
use super::results::Counted;
use crate::inputs::BODY_BYTES;

const PAGE: usize = 1_000;

/// What was found on the server for one contestant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// All records, whatever their state.
    pub(super) records: u64,
    /// Those that have their outcome, whole.
    pub(super) done: u64,
    /// How many runs were granted for them, where that is kept.
    pub(super) attempts: Option<u64>,
    /// How many replays were counted, where they are.
    pub(super) duplicates: Option<u64>,
}

impl Census {
    /// Whether every key is there, ran once and is done, and every duplicate was answered by a replay.
    fn agrees(self, counted: &Counted) -> Result<()> {
        let keys = counted.loaded + counted.ran;
        let Self { records, done, attempts, duplicates } = self;
        ensure!(
            (records, done) == (keys, keys)
                && attempts.is_none_or(|attempts| attempts == keys)
                && duplicates.is_none_or(|duplicates| duplicates == counted.replayed),
            "what {} holds is not what its callers were told, so its numbers count for nothing: {self:?}, {counted:?}",
            counted.contestant
        );
        Ok(())
    }
}

/// Counts what the server holds, and refuses what does not agree. semel writes counts of duplicates a little later: while
/// some are missing it counts again, for a few seconds.
pub(super) fn checked(
    entry: &Entry,
    loaded: u64,
    runtime: &Runtime,
    mut count: impl AsyncFnMut() -> Result<Census>,
) -> Result<Counted> {
    const TRIES: u32 = 20;
    let told = entry.entrant.told();
    let counted = Counted {
        contestant: entry.name,
        setting: entry.setting,
        loaded,
        ran: told.ran,
        replayed: told.replayed,
    };
    let mut found = runtime.block_on(count())?;
    for _ in 0..TRIES {
        if found.duplicates.is_none_or(|duplicates| duplicates >= told.replayed) {
            break;
        }
        sleep(Duration::from_millis(250));
        found = runtime.block_on(count())?;
    }
    found.agrees(&counted)?;
    Ok(counted)
}

/// What a store of semel's holds, by its own account.
pub(super) async fn of_store(store: &impl Store) -> Result<Census> {
    let (mut found, mut attempts, mut duplicates) = (Census::default(), 0, 0);
    let mut after = None;
    loop {
        let page = store.scan(Scan { after, limit: PAGE, ..Scan::default() }).await?.value;
        for record in &page.records {
            let is_whole = record.outcome().is_some_and(|outcome| outcome.bytes().len() == BODY_BYTES);
            found.records += 1;
            found.done += u64::from(record.state.word() == StateWord::Done && is_whole);
            attempts += u64::from(record.attempt);
            duplicates += record.duplicates.count;
        }
        after = page.next;
        if after.is_none() {
            return Ok(Census { attempts: Some(attempts), duplicates: Some(duplicates), ..found });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_missing_unfinished_or_ran_twice_is_noticed() {
        let counted = Counted { contestant: "one", setting: "", loaded: 10, ran: 5, replayed: 3 };
        let right = Census { records: 15, done: 15, attempts: Some(15), duplicates: Some(3) };
        assert!(right.agrees(&counted).is_ok());
        assert!(Census { attempts: None, duplicates: None, ..right }.agrees(&counted).is_ok());
        for wrong in [
            Census { records: 14, done: 14, ..right },
            Census { done: 14, ..right },
            Census { attempts: Some(16), ..right },
            Census { duplicates: Some(2), ..right },
        ] {
            assert!(wrong.agrees(&counted).is_err(), "{wrong:?}");
        }
    }
}
