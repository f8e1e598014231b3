//! Records by their ids.

use std::sync::Arc;

use redis::Value;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::Answer;
use semel::{RecordId, Result};

use crate::connect::{Command, Purpose};
use crate::error::Trouble;
use crate::names::Tag;
use crate::reply::{self, Said};
use crate::row;
use crate::store::Inner;
use crate::swap::groups;

pub(crate) async fn load(inner: Arc<Inner>, ids: Vec<RecordId>) -> Result<Answer<Vec<Option<Record>>>> {
    let (value, now) = fetch(&inner, &ids).await?;
    Ok(Answer { now, value })
}

/// The records with these ids, and a now that is not before anything in them.
pub(crate) async fn fetch(inner: &Inner, ids: &[RecordId]) -> Result<(Vec<Option<Record>>, Timestamp)> {
    if ids.is_empty() {
        let (_, now) = inner.servers.send(&[], Purpose::Read).await?;
        return Ok((Vec::new(), now));
    }
    let groups = groups(inner.servers.is_cluster(), ids.iter().copied());
    let get = |(tag, at): &(Tag, Vec<usize>)| {
        let mut cmd = redis::cmd("MGET");
        at.iter().filter_map(|at| ids.get(*at)).for_each(|id| {
            cmd.arg(inner.names.record(id));
        });
        Command { tag: *tag, cmd }
    };
    let commands: Vec<_> = groups.iter().map(get).collect();
    let (answers, now) = inner.servers.send(&commands, Purpose::Read).await?;
    let mut records: Vec<Option<Record>> = ids.iter().map(|_| None).collect();
    for ((_, at), answer) in groups.into_iter().zip(answers) {
        for (at, found) in at.into_iter().zip(found(answer)?) {
            if let Some(place) = records.get_mut(at) {
                *place = found;
            }
        }
    }
    Ok((records, now))
}

/// The records in an answer to MGET.
fn found(answer: Value) -> Result<Vec<Option<Record>>> {
    let record = |value: Value| match value.into() {
        Said::Bytes(bytes) => row::record(&bytes).map(|record| Some(Arc::unwrap_or_clone(record))),
        Said::Nothing => Ok(None),
        Said::Number(_) | Said::Many(_) | Said::Other => Err(Trouble::nonsense("MGET").harmless().into()),
    };
    reply::list(answer, "MGET").map_err(Trouble::harmless)?.into_iter().map(record).collect()
}
