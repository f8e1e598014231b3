//! Records by their ids.

use std::sync::Arc;

use redis::Value;
use semel::clock::Timestamp;
use semel::store::{Answer, Loaded};
use semel::{RecordId, Result};

use crate::connect::{Command, Purpose};
use crate::error::{Failure, damaged};
use crate::names::Tag;
use crate::reply::{self, ReplyValue};
use crate::row::{self, Asked};
use crate::store::{Inner, cacheable};
use crate::swap::groups;

pub(crate) async fn load(inner: Arc<Inner>, ids: Vec<RecordId>) -> Result<Answer<Vec<Loaded>>> {
    let (value, now) = fetch(&inner, &ids).await?;
    Ok(cacheable(now, value))
}

/// The records with these ids, and a now that is not before anything in them.
pub(crate) async fn fetch(inner: &Inner, ids: &[RecordId]) -> Result<(Vec<Loaded>, Timestamp)> {
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
    let mut records: Vec<Loaded> = ids.iter().map(|_| Ok(None)).collect();
    for ((_, at), answer) in groups.into_iter().zip(answers) {
        let values = reply::list(answer, "MGET").map_err(Failure::harmless)?;
        for (at, value) in at.into_iter().zip(values) {
            if let (Some(id), Some(place)) = (ids.get(at), records.get_mut(at)) {
                *place = loaded(inner, *id, value)?;
            }
        }
    }
    Ok((records, now))
}

/// What is stored under one id; an error only if the reply is not one of MGET.
fn loaded(inner: &Inner, id: RecordId, value: Value) -> Result<Loaded> {
    match value.into() {
        ReplyValue::Bytes(bytes) => Ok(row::record(&bytes, Asked::Id(id))
            .map(Some)
            .map_err(|why| damaged(&inner.names.record(&id), why))),
        ReplyValue::Nothing => Ok(Ok(None)),
        ReplyValue::Number(_) | ReplyValue::Many(_) | ReplyValue::Other => {
            Err(Failure::unexpected_reply("MGET").harmless().into())
        }
    }
}
