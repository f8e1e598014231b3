//! Many records, a line each.

use std::time::Duration;

use anyhow::Result;
use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::{Record, StateWord};
use semel::store::{Filter, Store};
use semel_ops::record_json::RecordView;
use semel_ops::store_url::Address;

use super::show::Bytes;
use super::{IdPrefix, words};
use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{number, out, span, style};
use semel_ops::lookup::walk::{self, Page, Walk};

/// How many digits of an id say where to go on: no two ids ever share so many.
const CURSOR_DIGITS: usize = 16;

/// What is to be listed.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) store: Address,
    pub(crate) filter: Filtered,
    /// How many records at most; `None` for all.
    pub(crate) limit: Option<usize>,
    /// Where the last page ended.
    pub(crate) after: Option<IdPrefix>,
    pub(crate) json: bool,
    pub(crate) bytes: Bytes,
}

/// Which records are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filtered {
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) operation: Option<Box<str>>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) states: Vec<StateWord>,
    pub(crate) older_than: Option<Duration>,
}

impl Filtered {
    async fn on(&self, store: &dyn Store) -> Result<Filter> {
        let first_seen_before = match self.older_than {
            Some(age) => Some(earlier(walk::now(store).await?, age)),
            None => None,
        };
        Ok(Filter {
            scope: self.scope.clone(),
            operation: self.operation.clone(),
            name: self.name.clone(),
            states: self.states.clone(),
            first_seen_before,
        })
    }
}

fn earlier(now: Timestamp, span: Duration) -> Timestamp {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

/// Lists, page by page: what was read is printed before more is asked for.
pub(crate) async fn list(plan: &List) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let filter = plan.filter.on(&*store).await?;
    let mut walk = Walk::new(&*store, filter, plan.after.as_ref().map(IdPrefix::last));
    let (mut shown, mut last) = (0_usize, None);
    let bar = Bar::of_ids("looking");
    let mut rows = Vec::new();
    loop {
        let left = plan.limit.map(|limit| limit.saturating_sub(shown));
        let page = match left {
            Some(0) => break,
            Some(left) => walk.next_of(left.min(walk::PAGE_RECORDS_MAX)).await?,
            None => walk.next().await?,
        };
        let Some(Page { records, now, .. }) = page else { break };
        shown = shown.saturating_add(records.len());
        last = records.last().map(|record| record.key.id()).or(last);
        bar.walked(walk.after(), shown as u64);
        if plan.json {
            records
                .iter()
                .try_for_each(|record| out::json(&RecordView::of(record, now, plan.bytes.content())))?;
        } else if plan.limit.is_some() {
            rows.extend(records.into_iter().map(|record| (record, now)));
        } else {
            // All of them may be more than memory holds: a table a page.
            print(&records.into_iter().map(|record| (record, now)).collect::<Vec<_>>())?;
        }
    }
    drop(bar);
    if plan.json {
        return Ok(());
    }
    print(&rows)?;
    footer(shown, last.filter(|_| !walk.is_at_end()))
}

fn print(records: &[(Record, Timestamp)]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(vec![
        Column::whole("id"),
        Column::whole("state"),
        Column::elastic("scope", 8),
        Column::elastic("operation", 8),
        Column::elastic("name", 12),
        Column::number("attempt"),
        Column::number("age"),
        Column::number("left"),
        Column::elastic("who or why", 10),
    ]);
    for (record, now) in records {
        table.row(row(record, *now));
    }
    out::print(&(table.lines(out::width()).join("\n") + "\n"))
}

fn row(record: &Record, now: Timestamp) -> Vec<Cell> {
    let colour = style::of_state(record, now);
    vec![
        Cell::new(&words::short(record)),
        Cell::styled(record.state.word().as_str(), colour.clone()),
        Cell::new(&words::scope(record)),
        Cell::new(record.key.operation()),
        Cell::styled(record.key.name(), style::strong()),
        Cell::new(&record.attempt.to_string()),
        Cell::new(&span::shown(now.since(record.first_seen_at))),
        Cell::styled(&words::left(record, now), colour),
        Cell::new(words::who_or_why(record)),
    ]
}

fn footer(shown: usize, more_after: Option<RecordId>) -> Result<()> {
    let shown = number::counted(shown as u64, "record");
    let text = match more_after {
        None => format!("{shown}, and no more."),
        Some(last) => {
            let cursor: String = last.to_string().chars().take(CURSOR_DIGITS).collect();
            format!("{shown}; there may be more: the same with --after {cursor}, or --all")
        }
    };
    out::line(&style::quiet().apply_to(text).to_string())
}
