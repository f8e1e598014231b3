//! How far each pipeline has read its streams.

use anyhow::Result;
use semel::clock::Timestamp;
use semel::machine::offset::{self, Offset};
use semel::record::{Record, StateWord};
use semel::store::Filter;
use semel_server::store::Address;
use serde_json::{Value, json};

use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::moment::{self, rfc3339};
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{number, out, style};
use semel_server::sight::walk::Walk;

/// The operation of offsets.
const OFFSET: &str = "offset";

/// Which offsets are to be listed.
#[derive(Debug)]
pub(crate) struct Offsets {
    pub(crate) store: Address,
    /// The tenant; without a pipeline, also those below it.
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: Option<String>,
    pub(crate) json: bool,
}

/// One offset.
struct Row {
    /// The tenant's path, and the pipeline as its last part.
    scope: Vec<Box<str>>,
    stream: Box<str>,
    offset: Offset,
    at: Timestamp,
}

pub(crate) async fn list(plan: &Offsets) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let (mut rows, mut now) = (Vec::new(), Timestamp::from_micros(0));
    let bar = Bar::of_ids("looking");
    let mut walk = Walk::new(&*store, plan.filter(), None);
    while let Some(page) = walk.next().await? {
        now = page.now;
        rows.extend(page.records.iter().filter_map(|record| plan.row(record)));
        bar.walked(walk.after(), rows.len() as u64);
    }
    drop(bar);
    rows.sort_by(|one, other| (&one.scope, &one.stream).cmp(&(&other.scope, &other.stream)));
    if plan.json {
        return rows.iter().try_for_each(|row| out::json(&row.json()));
    }
    if rows.is_empty() {
        let whose = plan.pipeline.as_deref().map_or_else(String::new, |pipeline| format!(" of {pipeline}"));
        return out::line(&format!(
            "There are no offsets{whose} in {}: nobody has begun to read.",
            plan.store
        ));
    }
    out::print(&(table(&rows, now).lines(out::width()).join("\n") + "\n"))?;
    let streams = number::counted(rows.len() as u64, "stream");
    out::line(&style::quiet().apply_to(format!("{streams}.")).to_string())
}

impl Offsets {
    fn filter(&self) -> Filter {
        let pipeline = self.pipeline.as_deref().map(|name| name.trim().into());
        Filter {
            scope: self.scope.iter().cloned().chain(pipeline).collect(),
            operation: Some(OFFSET.into()),
            states: vec![StateWord::Done],
            ..Filter::default()
        }
    }

    fn row(&self, record: &Record) -> Option<Row> {
        let offset = offset::read(record)?;
        let scope: Vec<Box<str>> = record.key.scope().map(Into::into).collect();
        // A scope that only begins like this one is another pipeline's.
        let is_wanted = self.pipeline.is_none() || scope.len() == self.scope.len().saturating_add(1);
        is_wanted.then(|| Row { scope, stream: record.key.name().into(), offset, at: record.changed_at })
    }
}

impl Row {
    fn pipeline(&self) -> String {
        let escaped = |part: &str| part.replace('\\', "\\\\").replace('/', "\\/");
        self.scope.iter().map(|part| escaped(part)).collect::<Vec<_>>().join("/")
    }

    fn json(&self) -> Value {
        let (pipeline, scope) = self.scope.split_last().map_or(("", &[][..]), |(last, rest)| (&**last, rest));
        json!({
            "pipeline": pipeline,
            "scope": scope,
            "stream": self.stream,
            // Text: not every reader of JSON has integers of 128 bits.
            "position": self.offset.position.map(|position| position.to_string()),
            "last_event": self.offset.last_event,
            "epoch": self.offset.epoch,
            "since": rfc3339(self.at),
        })
    }
}

fn table(rows: &[Row], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::elastic("pipeline", 8),
        Column::elastic("stream", 8),
        Column::number("position"),
        Column::elastic("last event", 10),
        Column::number("epoch"),
        Column::number("since"),
    ]);
    for row in rows {
        let position = row.offset.position.map_or_else(|| "start".to_owned(), |at| at.to_string());
        table.row(vec![
            Cell::styled(&row.pipeline(), style::strong()),
            Cell::new(&row.stream),
            Cell::new(&position),
            Cell::new(row.offset.last_event.as_deref().unwrap_or("-")),
            Cell::new(&row.offset.epoch.to_string()),
            Cell::styled(&moment::relative(row.at, now), style::quiet()),
        ]);
    }
    table
}
