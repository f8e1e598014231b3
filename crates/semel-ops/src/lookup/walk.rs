//! Through a store page by page, in the order of ids.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Filter, Page as StorePage, Scan, Store};
use semel::{Error, RecordId, Result};

/// How many records a page has at most.
pub const PAGE_RECORDS_MAX: usize = 1_024;
/// About how many bytes a page may have: what bounds the memory of a walk, however large records are.
const PAGE_BYTES: usize = 8 << 20;
/// How many records the first page of a walk has at most.
const FIRST_PAGE_RECORDS: usize = 16;

/// A walk through a store.
pub struct Walk<'a> {
    pages: Pages<'a>,
}

/// Some records, and the store's now when they were read.
pub struct Page {
    /// Those that count, in the order of their ids, each as everybody sees it: a run that lapsed under `hold` is held.
    pub records: Vec<Arc<Record>>,
    /// Those that cannot be read, and why.
    pub damaged: Vec<(RecordId, Error)>,
    /// How many more were past their time.
    pub past: usize,
    /// The store's now.
    pub now: Timestamp,
}

impl<'a> Walk<'a> {
    /// Through all records that match, from behind `after` on.
    pub fn new(store: &'a dyn Store, filter: Filter, after: Option<RecordId>) -> Self {
        Self { pages: Pages::new(store, filter, after) }
    }

    /// Where the walk is; `None` at its end.
    pub fn after(&self) -> Option<RecordId> {
        self.pages.after()
    }

    /// Goes on behind this record, which the walk has passed.
    pub(super) fn go_back_to(&mut self, id: RecordId) {
        self.pages.after = Some(id);
        self.pages.at_end = false;
    }

    /// Whether there are no more.
    pub fn is_at_end(&self) -> bool {
        self.pages.at_end
    }

    /// The next page, which may be empty; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Page>> {
        self.next_of(PAGE_RECORDS_MAX).await
    }

    /// The next page with at most so many records; with fewer, if records are large.
    pub async fn next_of(&mut self, limit: usize) -> Result<Option<Page>> {
        let Some(Answer { now, value: mut page, .. }) = self.pages.next_of(limit).await? else {
            return Ok(None);
        };
        let all = page.records.len();
        page.records.retain(|record| record.is_live(now));
        let past = all.saturating_sub(page.records.len());
        let records = page.records.into_iter().map(|record| record.seen_at(now)).collect();
        Ok(Some(Page { records, damaged: page.damaged, past, now }))
    }
}

/// The pages of a store exactly as it has them: with records past their time, and none turned into what people see.
pub struct Pages<'a> {
    store: &'a dyn Store,
    filter: Filter,
    after: Option<RecordId>,
    page_records: usize,
    at_end: bool,
}

impl<'a> Pages<'a> {
    /// Of all records that match, from behind `after` on.
    pub fn new(store: &'a dyn Store, filter: Filter, after: Option<RecordId>) -> Self {
        // The first page is small: it is not known yet how large records are.
        Self { store, filter, after, page_records: FIRST_PAGE_RECORDS, at_end: false }
    }

    /// Where to go on; `None` at the end.
    pub fn after(&self) -> Option<RecordId> {
        self.after.filter(|_| !self.at_end)
    }

    /// The next page with at most so many records; with fewer, if records are large. `None` at the end.
    pub async fn next_of(&mut self, limit: usize) -> Result<Option<Answer<StorePage>>> {
        if self.at_end {
            return Ok(None);
        }
        let scan =
            Scan { filter: self.filter.clone(), after: self.after, limit: limit.min(self.page_records) };
        let answer = self.store.scan(scan).await?;
        self.page_records = next_size(&answer.value.records);
        match answer.value.next {
            Some(next) => self.after = Some(next),
            None => self.at_end = true,
        }
        Ok(Some(answer))
    }
}

/// How many records like these fit a page.
fn next_size(records: &[Arc<Record>]) -> usize {
    let bytes = records.iter().map(|record| record.heap_bytes()).fold(0, usize::saturating_add);
    let of_one = bytes.checked_div(records.len()).unwrap_or(1).max(1);
    PAGE_BYTES.checked_div(of_one).unwrap_or(1).clamp(1, PAGE_RECORDS_MAX)
}

/// The store's own now.
pub async fn now(store: &dyn Store) -> Result<Timestamp> {
    Ok(store.load(vec![RecordId::from_bytes([0; 32])]).await?.now)
}

/// The moment so long before the store's now.
pub async fn before(store: &dyn Store, span: Duration) -> Result<Timestamp> {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Ok(Timestamp::from_micros(now(store).await?.as_micros().saturating_sub(micros)))
}

/// The record with this id, if there is one that counts, as everybody sees it, and the store's now.
pub async fn live(store: &dyn Store, id: RecordId) -> Result<Option<(Arc<Record>, Timestamp)>> {
    let Answer { now, value, .. } = store.load(vec![id]).await?;
    let found = value.into_iter().next().transpose()?.flatten();
    let record = found.filter(|record| record.is_live(now));
    Ok(record.map(|record| (record.seen_at(now), now)))
}
