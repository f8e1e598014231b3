//! Many records, a line each.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::{Record, StateKind};
use semel::store::{Filter, Store};
use semel_ops::format::scope;
use semel_ops::lookup::walk::{self, Page, Walk};
use semel_ops::record_json::RecordView;

use super::show::content;
use super::{IdPrefix, words};
use crate::args::{Scope, at_least_one};
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, Cell, Column, Table, counted, out, span, style};

/// How many digits of an id say where to go on: no two ids ever share so many.
const CURSOR_DIGITS: usize = 16;

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only keys whose scope begins with these parts
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// Only this operation
    #[arg(long, value_name = "WORD")]
    operation: Option<String>,
    /// Only this name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Only these states: running, done, released, held
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = state)]
    state: Vec<StateKind>,
    /// Only what was first seen longer ago than this
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    older_than: Option<Duration>,
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
        let (filter, content) = (self.filter(&*store).await?, content(self.outcome));
        let mut walk = Walk::new(&*store, filter, self.after.as_ref().map(IdPrefix::last));
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

    async fn filter(&self, store: &dyn Store) -> Result<Filter> {
        let first_seen_before = match self.older_than {
            Some(age) => {
                let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
                Some(Timestamp::from_micros(walk::now(store).await?.as_micros().saturating_sub(age)))
            }
            None => None,
        };
        Ok(Filter {
            scope: self.scope.clone().unwrap_or_default(),
            operation: self.operation.as_deref().map(Into::into),
            name: self.name.as_deref().map(Into::into),
            states: self.state.clone(),
            first_seen_before,
        })
    }
}

fn state(word: &str) -> Result<StateKind, String> {
    let known = || StateKind::ALL.map(StateKind::as_str).join(", ");
    StateKind::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| format!("`{word}` is no state; there are {}", known()))
}

fn print(records: &[(Arc<Record>, Timestamp)]) -> Result<()> {
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
    table.print()
}

fn row(record: &Record, now: Timestamp) -> Vec<Cell> {
    let colour = style::of_state(record, now);
    vec![
        Cell::new(&words::short(record)),
        Cell::styled(record.state.kind().as_str(), colour.clone()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_none_is_told_which_there_are() {
        assert_eq!(state("held"), Ok(StateKind::Held));
        assert!(state("stuck").expect_err("is none").contains("running, done, released, held"));
    }
}
