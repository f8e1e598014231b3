//! What open, verify, repair and the count of records may say about a folder: whole, or refused with the file's name and
//! the next step; never silently less.

use std::path::Path;
use std::sync::Arc;

use semel::record::Record;
use semel::store::Store;
use semel::{Error, RecordId};
use semel_file::check::{repair, verify};

use super::sample::{open, scratch};
use crate::sync::ready;

/// The verdict on one damaged folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Everything that was acknowledged is read.
    Whole,
    /// It opens, and some records are refused with the name of the file.
    DamagedRecords,
    /// It does not open.
    Refused,
}

/// How a refusal goes on: with something to do.
const NEXT_STEPS: [&str; 6] = [
    "`semel file",
    "bring the",
    "give the files",
    "move the file back",
    "give this process the right",
    "check the path",
];

/// Judges a folder, which is changed by it. A refusal must name one of `files`.
pub(crate) fn judge(folder: &Path, acknowledged: &[Arc<Record>], files: &[&str]) -> Result<Seen, String> {
    let verified = verify(folder, |_, _| {}).map(|findings| findings.is_whole());
    let opened = judge_open(folder, acknowledged, files)?;
    match (&verified, opened) {
        (Ok(true), Seen::DamagedRecords | Seen::Refused) => {
            Err(format!("verify says whole, and open {opened:?}"))
        }
        (Err(error), Seen::Whole) => Err(format!("verify refuses what opens: {error}")),
        (Err(error), _) => is_fit(error, files).map(|()| opened),
        (Ok(_), _) => Ok(opened),
    }
}

/// Judges what is copied out of a folder, which is only read. Takes longer than all the rest: a copy begins with
/// megabytes of room.
pub(crate) fn judge_copy(folder: &Path, acknowledged: &[Arc<Record>], files: &[&str]) -> Result<(), String> {
    let whole = verify(folder, |_, _| {}).is_ok_and(|findings| findings.is_whole());
    let to = scratch();
    let findings = match repair(folder, to.path(), |_, _| {}) {
        Ok(findings) if findings.is_whole() != whole => {
            return Err(format!("verify and repair do not agree: {findings:?}"));
        }
        Ok(findings) => findings,
        Err(error) => return is_fit(&error, files),
    };
    let store = open(to.path()).map_err(|error| format!("the copy does not open: {error}"))?;
    let missing = acknowledged.len() - read(&store, acknowledged)?.0;
    match findings.damages.as_slice() {
        [] if missing > 0 => Err(format!("repair says whole, and {missing} records are missing in the copy")),
        [] => Ok(()),
        damages if damages.iter().any(|damage| files.contains(&&*damage.file)) => Ok(()),
        damages => Err(format!("the findings name other files: {damages:?}")),
    }
}

fn judge_open(folder: &Path, acknowledged: &[Arc<Record>], files: &[&str]) -> Result<Seen, String> {
    let store = match open(folder) {
        Ok(store) => store,
        Err(error) => return is_fit(&error, files).map(|()| Seen::Refused),
    };
    let (whole, refused) = read(&store, acknowledged)?;
    for error in &refused {
        is_fit(error, files)?;
    }
    if whole + refused.len() < acknowledged.len() {
        let lost = acknowledged.len() - whole - refused.len();
        return Err(format!("{lost} of {} outcomes are gone without a word", acknowledged.len()));
    }
    if store.records() < acknowledged.len() {
        return Err(format!("it counts {} records of {}", store.records(), acknowledged.len()));
    }
    Ok(if refused.is_empty() { Seen::Whole } else { Seen::DamagedRecords })
}

/// How many outcomes are read as they were acknowledged, and why others are refused.
fn read(store: &dyn Store, acknowledged: &[Arc<Record>]) -> Result<(usize, Vec<Error>), String> {
    let loaded = ready(store.load(ids(acknowledged))).map_err(|error| format!("load: {error}"))?.value;
    let (mut whole, mut refused) = (0, Vec::new());
    for (record, found) in acknowledged.iter().zip(loaded) {
        match found {
            Ok(Some(found)) if found == *record => whole += 1,
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    Ok((whole, refused))
}

fn ids(acknowledged: &[Arc<Record>]) -> Vec<RecordId> {
    acknowledged.iter().map(|record| record.key.id()).collect()
}

/// A refusal names the file, and says what to do.
pub(crate) fn is_fit(error: &Error, files: &[&str]) -> Result<(), String> {
    let message = error.to_string();
    if !files.iter().any(|file| message.contains(file)) {
        return Err(format!("refused without the name of the file: {message}"));
    }
    if !NEXT_STEPS.iter().any(|step| message.contains(step)) {
        return Err(format!("refused without a next step: {message}"));
    }
    Ok(())
}
