//! Many records, a line each.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::Record;
use semel_http::HttpRecord;
use semel_ops::lookup::walk::{self, Page};
use semel_ops::lookup::{Order, Selection};
use semel_ops::record_json::RecordView;
use semel_ops::store_url::Opened;

use super::filter::FilterArgs;
use super::show::content;
use super::{IdPrefix, words};
use crate::args::at_least_one;
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, Cell, Column, Table, counted, out, span, style};

/// How many digits of an id say where to go on: no two ids ever share so many.
const CURSOR_DIGITS: usize = 16;
/// How long a sorted list may read: the records of the largest stores, and not for ever.
const SORT_FOR_MAX: Duration = Duration::from_mins(5);

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// The same as --reason-contains
    #[arg(long, value_name = "TEXT", conflicts_with = "reason_contains", hide = true)]
    reason: Option<String>,
    /// In which order: by id, by age (oldest first) or by change (newest first). The last two read all that match
    #[arg(long, value_name = "ORDER", default_value = "id", conflicts_with_all = ["after", "all"])]
    sort: Order,
    /// How many records at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Go on behind this id: what the last page said
    #[arg(long, value_name = "ID")]
    after: Option<IdPrefix>,
    /// All of them, however many
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// With --json: the bytes of outcomes, too, as base64
    #[arg(long, requires = "json")]
    outcome: bool,
}

impl ListArgs {
    /// Lists, page by page: what was read is printed before more is asked for.
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let limit = (!self.all).then_some(at_least_one("--limit", self.limit)?.get());
        let store = store.open_existing().await?;
        if self.outcome {
            store.must_show_content()?;
        }
        if let (Some(limit), true) = (limit, self.sort != Order::Id) {
            return self.sorted(&store, limit).await;
        }
        let content = content(self.outcome);
        let mut walk = self.selection().walk(&**store, self.after.as_ref().map(IdPrefix::last)).await?;
        let (mut shown, mut last) = (0_usize, None);
        let bar = Bar::of_ids("looking");
        let mut rows = Vec::new();
        loop {
            let left = limit.map(|limit| limit.saturating_sub(shown));
            let page = match left {
                Some(0) => break,
                Some(left) => walk.next_of(left.min(walk::PAGE_RECORDS_MAX)).await?,
                None => walk.next().await?,
            };
            let Some(Page { records, damaged, now, .. }) = page else { break };
            for (id, error) in damaged {
                eprintln!("warning: the record {id} cannot be read: {error}");
            }
            shown = shown.saturating_add(records.len());
            last = records.last().map(|record| record.key.id()).or(last);
            bar.walked(walk.after(), shown as u64);
            if self.json {
                records.iter().try_for_each(|record| out::json(&RecordView::of(record, now, content)))?;
            } else if limit.is_some() {
                rows.extend(records.into_iter().map(|record| (record, now)));
            } else {
                // All of them may be more than memory holds: a table a page.
                print(&records.into_iter().map(|record| (record, now)).collect::<Vec<_>>())?;
            }
        }
        drop(bar);
        if self.json {
            return Ok(());
        }
        print(&rows)?;
        footer(shown, last.filter(|_| !walk.is_at_end()))
    }

    /// The first by age or by change: stores keep no such order, so all that match are read.
    async fn sorted(&self, store: &Opened, limit: usize) -> Result<()> {
        let selection = self.selection();
        let sorted = selection.sorted(&**store, self.sort, limit, SORT_FOR_MAX).await?;
        let rows = selection.load(&**store, &sorted.ids).await?;
        let cut = "the store keeps no such order, and not all of it was read in time: there may be earlier records. \
                   Narrow the conditions";
        if self.json {
            if sorted.is_cut {
                eprintln!("warning: {cut}");
            }
            let content = content(self.outcome);
            return rows
                .iter()
                .try_for_each(|(record, now)| out::json(&RecordView::of(record, *now, content)));
        }
        print(&rows)?;
        let shown = counted(rows.len() as u64, "record");
        let all = if sorted.is_cut { format!("; {cut}.") } else { String::from(".") };
        out::quiet(&format!(
            "{shown} of {} that match, sorted by {}{all}",
            sorted.matched,
            self.sort.as_str()
        ))
    }

    fn selection(&self) -> Selection {
        let mut selection = self.filter.selection();
        selection.reason = selection.reason.or_else(|| self.reason.as_deref().map(Into::into));
        selection
    }
}

/// A record, and the store's now when it was read.
pub(super) type Row = (Arc<Record>, Timestamp);

fn print(records: &[Row]) -> Result<()> {
    if records.is_empty() { Ok(()) } else { table(records).print() }
}

pub(super) fn table(records: &[Row]) -> Table {
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
    table
}

fn row(record: &Record, now: Timestamp) -> Vec<Cell> {
    let (colour, http) = (style::of_state(record, now), HttpRecord::of(record));
    let status = http.and_then(|http| http.response()?.ok()?.status());
    vec![
        Cell::new(&words::short(record)),
        Cell::styled(record.state.kind().as_str(), colour.clone()),
        Cell::new(&http.map_or_else(|| words::scope(record), |http| http.caller().to_owned())),
        Cell::new(record.label.as_deref().filter(|_| http.is_some()).unwrap_or(record.key.operation())),
        Cell::styled(record.key.name(), style::strong()),
        Cell::new(&record.attempt.to_string()),
        Cell::new(&span::shown(now.since(record.first_seen_at))),
        Cell::styled(&words::left(record, now), colour),
        Cell::new(&status.map_or_else(|| words::who_or_why(record).to_owned(), |status| status.to_string())),
    ]
}

fn footer(shown: usize, more_after: Option<RecordId>) -> Result<()> {
    let shown = counted(shown as u64, "record");
    let text = match more_after {
        None => format!("{shown}, and no more."),
        Some(last) => {
            let cursor: String = last.to_string().chars().take(CURSOR_DIGITS).collect();
            format!("{shown}; there may be more: the same with --after {cursor}, or --all")
        }
    };
    out::quiet(&text)
}
