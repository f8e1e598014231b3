//! `semel stats`: how many records there are, and the oldest of those that somebody should look at.

use std::time::Duration;

use anyhow::Result;
use console::Style;
use semel::clock::Timestamp;
use semel::record::Record;
use semel_ops::lookup::Counted;
use semel_ops::record_json::millis;
use semel_ops::store_url::Opened;
use serde_json::{Value, json};

use crate::keys::words;
use crate::store_arg::StoreArg;
use crate::terminal::moment::rfc3339;
use crate::terminal::{Bar, Cell, Column, Stopwatch, Table, bytes, counted, grouped, out, span, style};

#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl StatsArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let address = store.address()?;
        let store = store.open_existing().await?;
        let tally = count(&store).await?;
        if self.json {
            return out::json(&json(&tally, ("store", address.to_string())));
        }
        let (records, took) = (counted(tally.records(), "record"), span::shown(tally.took));
        out::line(&format!("{address}: {records}, counted in {took}\n"))?;
        table(&tally).print()?;
        let (duplicates, mismatches) = (counted(tally.duplicates, "duplicate"), grouped(tally.mismatches));
        let mismatches =
            if tally.mismatches == 1 { "1 mismatch".to_owned() } else { format!("{mismatches} mismatches") };
        out::line(&format!("\n{duplicates} were answered without a run, and {mismatches} refused."))
    }
}

/// Counts everything there is.
pub(crate) async fn count(store: &Opened) -> Result<Counted> {
    let (watch, bar) = (Stopwatch::start(), Bar::of_ids("counting"));
    let counted = store.count_all(1, |after, records| bar.walked(after, records)).await?;
    Ok(Counted { took: watch.elapsed(), ..counted })
}

/// For scripts, with one member more.
pub(crate) fn json(counted: &Counted, (name, value): (&str, String)) -> Value {
    let oldest = |records: &[Record]| {
        let (record, key) = records.first().map(|record| (record, &record.key))?;
        Some(json!({
            "id": key.id().to_string(),
            "scope": key.scope().collect::<Vec<_>>(),
            "operation": key.operation(),
            "name": key.name(),
            "since": rfc3339(words::since(record)),
            "age_ms": millis(age(counted, record)),
        }))
    };
    let mut json = json!({
        "records": counted.records(),
        "running": counted.running,
        "done": counted.done,
        "released": counted.released,
        "held": counted.held,
        "lapsed_leases": counted.lapsed,
        "past_retention": counted.past,
        "unreadable": counted.damaged,
        "outcome_bytes": counted.outcome_bytes,
        "duplicates": counted.duplicates,
        "mismatches": counted.mismatches,
        "oldest_running": oldest(&counted.oldest_running),
        "oldest_held": oldest(&counted.oldest_held),
        "took_ms": millis(counted.took),
    });
    if let Some(object) = json.as_object_mut() {
        object.insert(name.to_owned(), value.into());
    }
    json
}

/// For how long a record has been in its state.
fn age(counted: &Counted, record: &Record) -> Duration {
    counted.as_of.unwrap_or_else(|| Timestamp::from_micros(0)).since(words::since(record))
}

/// A state, how many records are in it, and how that looks.
type StateRow = (&'static str, fn(&Counted) -> u64, fn() -> Style);

pub(crate) const STATES: [StateRow; 5] = [
    ("running", |tally| tally.running, style::fine),
    ("  lapsed", |tally| tally.lapsed, style::wrong),
    ("held", |tally| tally.held, style::waiting),
    ("done", |tally| tally.done, style::strong),
    ("released", |tally| tally.released, style::strong),
];

/// The row of a state, with a third cell behind the count.
pub(crate) fn row(tally: &Counted, (word, count, colour): StateRow, third: &str) -> Vec<Cell> {
    let colour = if count(tally) == 0 { style::quiet() } else { colour() };
    vec![Cell::styled(word, colour), Cell::new(&grouped(count(tally))), Cell::new(third)]
}

fn table(tally: &Counted) -> Table {
    let mut table =
        Table::new(vec![Column::whole("state"), Column::number("records"), Column::elastic("", 20)]);
    let lapsed = if tally.lapsed == 0 { "" } else { "not renewed in time, and run again at the next claim" };
    let notes = [
        oldest(tally, tally.oldest_running.first()),
        lapsed.to_owned(),
        oldest(tally, tally.oldest_held.first()),
        format!("{} of outcomes", bytes::size(tally.outcome_bytes)),
        String::new(),
    ];
    for (state, note) in STATES.into_iter().zip(notes) {
        table.row(row(tally, state, &note));
    }
    if tally.past > 0 {
        let note = "past their retention: semel sweep removes them";
        table.row(row(tally, ("past", |tally| tally.past, style::quiet), note));
    }
    if tally.damaged > 0 {
        let note = "damaged: semel keys list says which";
        table.row(row(tally, ("unreadable", |tally| tally.damaged, style::wrong), note));
    }
    table
}

fn oldest(counted: &Counted, oldest: Option<&Record>) -> String {
    oldest.map_or_else(String::new, |record| {
        let (age, id) = (span::shown(age(counted, record)), words::short(record));
        format!("the oldest for {age}: {id} {}", words::key(record))
    })
}
