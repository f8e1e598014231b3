//! What a store may do with a damaged log: refuse it, say that a record is damaged, or serve what was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::record::Record;
use semel::store::{Scan, Store};
use semel::{Error, ErrorKind, RecordId};

use super::log::{Ending, Log};
use crate::sync::ready;

/// What became of one damaged log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was not opened.
    Refused,
    /// It was opened, and something in it cannot be read.
    Damaged,
    /// It was opened, and everything is served.
    Whole,
    /// It was opened without the last run, which nothing tells from one that the power cut short.
    WithoutTail,
}

/// A refusal must say what is wrong, and where.
pub(crate) fn judge_refusal(error: &Error, name: &str) -> Result<Seen, String> {
    let is_fit = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Newer | ErrorKind::Invalid);
    let message = error.to_string();
    let places = message.split(name).nth(1).is_some_and(|rest| rest.contains(|c: char| c.is_ascii_digit()));
    if is_fit && places {
        return Ok(Seen::Refused);
    }
    Err(format!("refused without a fit kind, the file and the offset: {error:?}"))
}

/// Whether a store serves what was written, and nothing else.
pub(crate) fn judge(store: &dyn Store, log: &Log) -> Result<Seen, String> {
    let loaded = judge_loads(store, log)?;
    judge_scan(store, log, loaded)?;
    Ok(loaded)
}

fn judge_loads(store: &dyn Store, log: &Log) -> Result<Seen, String> {
    let ids: Vec<RecordId> = log.histories.keys().copied().collect();
    let loaded = ready(store.load(ids.clone())).map_err(|error| format!("load: {error:?}"))?;
    worst(ids.iter().zip(loaded.value).map(|(id, found)| match found {
        Ok(found) => judge_one(log, *id, found.as_deref()),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Seen::Damaged),
        Err(error) => Err(format!("{}: {error:?}", id.short())),
    }))
}

fn judge_scan(store: &dyn Store, log: &Log, loaded: Seen) -> Result<(), String> {
    let mut shown: BTreeMap<RecordId, Arc<Record>> = BTreeMap::new();
    let mut damaged = Vec::new();
    let mut after = None;
    loop {
        let scan = Scan { after, limit: 200, ..Scan::default() };
        let page = ready(store.scan(scan)).map_err(|error| format!("scan: {error:?}"))?.value;
        shown.extend(page.records.into_iter().map(|record| (record.key.id(), record)));
        damaged.extend(page.damaged);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if damaged.is_empty() == (loaded == Seen::Damaged) {
        return Err(format!("a scan shows {} damaged records, and loads saw {loaded:?}", damaged.len()));
    }
    if let Some(stranger) = shown.keys().find(|id| !log.histories.contains_key(id)) {
        return Err(format!("{}: a scan shows what nobody wrote", stranger.short()));
    }
    // Of a damaged record the store knows the first half of its id.
    let is_damaged = |id: &&RecordId| damaged.iter().any(|(like, _)| begins_like(like, id));
    let readable = log.histories.keys().filter(|id| !is_damaged(id));
    worst(readable.map(|id| judge_one(log, *id, shown.get(id).map(|record| &**record)))).map(drop)
}

fn judge_one(log: &Log, id: RecordId, found: Option<&Record>) -> Result<Seen, String> {
    let history: &[Arc<Record>] = log.histories.get(&id).map_or(&[], Vec::as_slice);
    let Some((last, earlier)) = history.split_last() else {
        return Err(format!("{}: nobody wrote it", id.short()));
    };
    let may_lack = log.ending == Ending::PowerCut && log.last_run.contains(&id);
    match found {
        Some(found) if *found == **last => Ok(Seen::Whole),
        Some(found) if may_lack && earlier.last().is_some_and(|before| **before == *found) => {
            Ok(Seen::WithoutTail)
        }
        None if may_lack && earlier.is_empty() => Ok(Seen::WithoutTail),
        None if log.over.contains(&id) => Ok(Seen::Whole),
        Some(found) => Err(format!("{}: {:?} is served, and is not what was written", id.short(), found)),
        None => Err(format!("{}: a record is missing, and nothing says so", id.short())),
    }
}

fn begins_like(one: &RecordId, other: &RecordId) -> bool {
    one.as_bytes()[..16] == other.as_bytes()[..16]
}

/// The worst of what was seen; or what was wrong.
fn worst(all: impl Iterator<Item = Result<Seen, String>>) -> Result<Seen, String> {
    let mut worst = Seen::Whole;
    for seen in all {
        match seen? {
            Seen::Whole => {}
            other => worst = other,
        }
    }
    Ok(worst)
}
