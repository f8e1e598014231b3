//! Records in the order of their ids, page by page: tag by tag, and within a tag by id.

use std::collections::VecDeque;
use std::sync::Arc;

use redis::Value;
use semel::clock::Timestamp;
use semel::store::{Answer, Page, Scan};
use semel::{RecordId, Result};

use crate::connect::{Command, Purpose};
use crate::error::{Failure, ServerResult};
use crate::load::fetch;
use crate::names::{self, Tag};
use crate::store::Inner;
use crate::{reply, script};

/// How many records a page reads before it ends, shown or not: a filter that lets hardly anything through must not
/// keep its caller waiting for long.
const READ_MAX: usize = 4_096;
/// How many records are fetched together at most.
const RECORDS_A_CALL: usize = 256;
/// How many ids one call moves to the sets of their tags: a millisecond or two.
const SPREAD_A_CALL: usize = 256;
/// How many tags' ids are listed together at most, after one that was listed alone: one tag of a large store fills a
/// page, and all of a small one do not.
const TAGS_A_CALL_MAX: usize = 2_048;

pub(crate) async fn scan(inner: Arc<Inner>, scan: Scan) -> Result<Answer<Page>> {
    spread(&inner).await?;
    let mut walk = Walk::new(&inner, &scan);
    let mut page = Page { next: scan.after, ..Page::default() };
    let mut read: usize = 0;
    while listed(&page) < scan.limit && read < READ_MAX {
        let ids = walk.next_ids(scan.limit.clamp(16, RECORDS_A_CALL)).await?;
        if ids.is_empty() && walk.is_over() {
            page.next = None;
            break;
        }
        read = read.saturating_add(ids.len());
        let (records, now) = fetch(&inner, &ids).await?;
        walk.now = walk.now.max(now);
        for (id, record) in ids.iter().zip(records) {
            if listed(&page) == scan.limit {
                break;
            }
            match record {
                Ok(record) => page.records.extend(record.filter(|record| scan.filter.matches(record, now))),
                Err(why) => page.damaged.push((*id, why)),
            }
            page.next = Some(*id);
        }
    }
    let now = walk.now().await?;
    // A lease may have lapsed since its record was matched, and readers judge by the answer's now.
    page.records.retain(|record| scan.filter.matches(record, now));
    Ok(Answer::new(now, page))
}

/// Moves the ids that one server has in a set of all tags to the sets of their tags: claims leave that to the first scan after
/// them, because most are never listed.
async fn spread(inner: &Inner) -> Result<()> {
    let mut is_left = !inner.servers.is_cluster();
    while is_left {
        let command = Command { tag: Tag::FIRST, cmd: script::spread(&inner.names, SPREAD_A_CALL) };
        let (answers, _) = inner.servers.send(&[command], Purpose::Write).await.map_err(Failure::harmless)?;
        let moved = answers.into_iter().next().and_then(reply::number);
        let moved = moved.ok_or_else(|| Failure::unexpected_reply("the script for scans").harmless())?;
        is_left = usize::try_from(moved).is_ok_and(|moved| moved >= SPREAD_A_CALL);
    }
    Ok(())
}

/// How many records are on the page.
fn listed(page: &Page) -> usize {
    page.records.len().saturating_add(page.damaged.len())
}

/// A walk through the ids.
struct Walk<'a> {
    inner: &'a Inner,
    after: Option<RecordId>,
    /// The first tag that is not listed yet; `None` behind the last.
    next: Option<Tag>,
    /// How many tags were listed, and how many ids they had.
    seen: (usize, usize),
    listed: VecDeque<RecordId>,
    now: Timestamp,
}

impl<'a> Walk<'a> {
    fn new(inner: &'a Inner, scan: &Scan) -> Self {
        let first = scan.after.as_ref().map_or(Tag::FIRST, Tag::of);
        let (seen, listed) = ((0, 0), VecDeque::new());
        Self { inner, after: scan.after, next: Some(first), seen, listed, now: Timestamp::default() }
    }

    fn is_over(&self) -> bool {
        self.next.is_none() && self.listed.is_empty()
    }

    /// The next ids, in order; none behind the last.
    async fn next_ids(&mut self, limit: usize) -> Result<Vec<RecordId>> {
        while self.listed.len() < limit
            && let Some(first) = self.next
        {
            self.list(first, limit).await?;
        }
        let count = limit.min(self.listed.len());
        Ok(self.listed.drain(..count).collect())
    }

    /// How many tags should hold so many ids, judged by those that were listed: not many more, for a walk through a large
    /// store must not list what it does not show.
    fn tags_for(&self, limit: usize) -> usize {
        let (tags, ids) = self.seen;
        let enough = limit.saturating_mul(tags).checked_div(ids).unwrap_or(tags.saturating_mul(16));
        enough.saturating_add(1).min(TAGS_A_CALL_MAX)
    }

    /// Lists the ids of some more tags.
    async fn list(&mut self, first: Tag, limit: usize) -> Result<()> {
        let count = self.tags_for(limit);
        let tags: Vec<_> = first.onwards().take(count).collect();
        self.next = first.onwards().nth(count);
        let range = |tag: &Tag| {
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(self.inner.names.due(*tag)).arg(0).arg(-1);
            Command { tag: *tag, cmd }
        };
        let commands: Vec<_> = tags.iter().map(range).collect();
        let (answers, _) = self.inner.servers.send(&commands, Purpose::Read).await?;
        for answer in answers {
            let mut ids = ids(answer)?;
            self.seen.0 = self.seen.0.saturating_add(1);
            self.seen.1 = self.seen.1.saturating_add(ids.len());
            ids.retain(|id| self.after.is_none_or(|after| *id > after));
            ids.sort_unstable();
            self.listed.extend(ids);
        }
        Ok(())
    }

    /// A moment that is not before anything that was fetched.
    async fn now(&self) -> Result<Timestamp> {
        if self.now == Timestamp::default() {
            return Ok(self.inner.servers.send(&[], Purpose::Read).await?.1);
        }
        Ok(self.now)
    }
}

/// The ids of a tag, in no order.
fn ids(answer: Value) -> ServerResult<Vec<RecordId>> {
    let unexpected = || Failure::unexpected_reply("the ids of a tag").harmless();
    let id = |member: Value| {
        reply::text(member).and_then(|hex| names::id_from_hex(hex.as_bytes())).ok_or_else(unexpected)
    };
    reply::list(answer, "the ids of a tag").map_err(Failure::harmless)?.into_iter().map(id).collect()
}
