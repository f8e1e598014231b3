//! `semel stats`: how many records there are, and the oldest of those that somebody should look at.

use anyhow::Result;
use semel::record::Record;
use semel_ops::lookup::Counted;
use semel_ops::store_url::Address;
use serde_json::json;

use crate::keys::words;
use crate::opening;
use crate::tally;
use crate::terminal::number::{counted, grouped};
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{bytes, out, span, style};

/// Which store is to be counted.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) store: Address,
    pub(crate) json: bool,
}

pub(crate) async fn run(plan: &Stats) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let tally = tally::of(&*store).await?;
    if plan.json {
        let mut json = tally::json(&tally);
        if let Some(object) = json.as_object_mut() {
            object.insert("store".to_owned(), json!(plan.store.to_string()));
        }
        return out::json(&json);
    }
    let (count, took) = (counted(tally.records(), "record"), span::shown(tally.took));
    out::line(&format!("{}: {count}, counted in {took}\n", plan.store))?;
    out::print(&(table(&tally).lines(out::width()).join("\n") + "\n"))?;
    let (duplicates, mismatches) = (counted(tally.duplicates, "duplicate"), grouped(tally.mismatches));
    let mismatches =
        if tally.mismatches == 1 { "1 mismatch".to_owned() } else { format!("{mismatches} mismatches") };
    out::line(&format!("\n{duplicates} were answered without a run, and {mismatches} refused."))
}

fn table(tally: &Counted) -> Table {
    let mut table =
        Table::new(vec![Column::whole("state"), Column::number("records"), Column::elastic("", 20)]);
    let mut row = |word: &str, count: u64, colour: console::Style, note: &str| {
        let colour = if count == 0 { style::quiet() } else { colour };
        table.row(vec![Cell::styled(word, colour), Cell::new(&grouped(count)), Cell::new(note)]);
    };
    row("running", tally.running, style::fine(), &oldest(tally, tally.oldest_running.first()));
    let lapsed = if tally.lapsed == 0 { "" } else { "nobody renews them: semel keys list --state running" };
    row("  lapsed", tally.lapsed, style::wrong(), lapsed);
    row("held", tally.held, style::waiting(), &oldest(tally, tally.oldest_held.first()));
    row("done", tally.done, style::strong(), &format!("{} of outcomes", bytes::size(tally.outcome_bytes)));
    row("released", tally.released, style::strong(), "");
    if tally.past > 0 {
        row("past", tally.past, style::quiet(), "past their retention: semel sweep removes them");
    }
    table
}

fn oldest(counted: &Counted, oldest: Option<&Record>) -> String {
    oldest.map_or_else(String::new, |record| {
        let (age, id) = (span::shown(tally::age(counted, record)), words::short(record));
        format!("the oldest for {age}: {id} {}", words::key(record))
    })
}
