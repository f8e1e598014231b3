//! Removes what is past its keep, a little at a time: no call keeps the server busy for long.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use semel::Result;
use semel::clock::Timestamp;
use semel::store::{Answer, Swept};

use crate::connect::{Command, Purpose};
use crate::error::{Failure, ServerResult};
use crate::names::Tag;
use crate::reply;
use crate::script;
use crate::store::Inner;

/// How many tags one call of the script checks.
const TAGS_A_CALL: usize = 512;
/// How many records one call of the script checks: a fraction of a millisecond.
const RECORDS_A_CALL: usize = 128;

pub(crate) async fn sweep(inner: Arc<Inner>, limit: usize) -> Result<Answer<Swept>> {
    let mut progress = SweepProgress { removed: 0, limit, now: Timestamp::default() };
    let start = Tag::at(inner.sweep_next.load(Ordering::Relaxed));
    let tags: Vec<_> = start.around().collect();
    let mut rest = tags.as_slice();
    let mut is_common_left = !inner.servers.is_cluster();
    while is_common_left && progress.left() > 0 {
        is_common_left = progress.over_one(&inner, &[inner.names.common_due()]).await? == 0;
    }
    while let Some(next) = rest.first()
        && progress.left() > 0
    {
        let (part, behind) = rest.split_at_checked(TAGS_A_CALL).unwrap_or((rest, &[]));
        let cleared = if inner.servers.is_cluster() {
            progress.over_cluster(&inner, part).await
        } else {
            let sets: Vec<_> = part.iter().map(|tag| inner.names.due(*tag)).collect();
            progress.over_one(&inner, &sets).await
        };
        let cleared = cleared?;
        rest = if cleared < part.len() { rest.get(cleared..).unwrap_or_default() } else { behind };
        let next = rest.first().unwrap_or(next);
        inner.sweep_next.store(next.index(), Ordering::Relaxed);
    }
    if progress.now == Timestamp::default() {
        (_, progress.now) = inner.servers.send(&[], Purpose::Read).await?;
    }
    Ok(Answer::new(
        progress.now,
        Swept { removed: progress.removed, more_left: is_common_left || !rest.is_empty() },
    ))
}

/// A sweep in progress.
struct SweepProgress {
    removed: usize,
    limit: usize,
    now: Timestamp,
}

impl SweepProgress {
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.removed)
    }

    /// Removes what is due of these sets, and returns how many of them hold nothing more.
    async fn over_one(&mut self, inner: &Inner, sets: &[String]) -> ServerResult<usize> {
        let limit = self.left().min(RECORDS_A_CALL);
        let cmd = script::sweep(sets, limit, Some(inner.names.prefix()));
        let command = Command { tag: Tag::FIRST, cmd };
        let (answers, _) = inner.servers.send(&[command], Purpose::Write).await?;
        let answer =
            answers.into_iter().next().ok_or_else(|| Failure::unexpected_reply("no answer to a sweep"))?;
        self.add(reply::numbers(answer)?)
    }

    /// The same in a cluster, where one call can speak of one tag only: so it first asks which tags have anything due.
    async fn over_cluster(&mut self, inner: &Inner, tags: &[Tag]) -> ServerResult<usize> {
        let (_, now) = inner.servers.send(&[], Purpose::Read).await?;
        self.now = self.now.max(now);
        let count = |tag: &Tag| {
            let mut cmd = redis::cmd("ZCOUNT");
            cmd.arg(inner.names.due(*tag)).arg("-inf").arg(now.as_micros());
            Command { tag: *tag, cmd }
        };
        let counts: Vec<_> = tags.iter().map(count).collect();
        let (counts, _) = inner.servers.send(&counts, Purpose::Read).await?;
        let mut allowed = self.left();
        let mut commands = Vec::new();
        let mut cleared = tags.len();
        for (at, (tag, count)) in tags.iter().zip(counts).enumerate() {
            let due = reply::number(count).ok_or_else(|| Failure::unexpected_reply("ZCOUNT").harmless())?;
            let due = usize::try_from(due).unwrap_or(usize::MAX);
            let limit = due.min(allowed).min(RECORDS_A_CALL);
            if limit > 0 {
                commands
                    .push(Command { tag: *tag, cmd: script::sweep(&[inner.names.due(*tag)], limit, None) });
                allowed = allowed.saturating_sub(limit);
            }
            if limit < due {
                cleared = cleared.min(at);
            }
        }
        let (answers, _) = inner.servers.send(&commands, Purpose::Write).await?;
        for answer in answers {
            self.add(reply::numbers(answer)?)?;
        }
        Ok(cleared)
    }

    fn add(&mut self, [now, removed, cleared]: [u64; 3]) -> ServerResult<usize> {
        let number =
            |number| usize::try_from(number).map_err(|_| Failure::unexpected_reply("numbers of a sweep"));
        self.now = self.now.max(Timestamp::from_micros(now));
        self.removed = self.removed.saturating_add(number(removed)?);
        number(cleared)
    }
}
