//! How far each pipeline has read its streams.

use anyhow::Result;
use semel::clock::Timestamp;
use semel_ops::format::scope;
use semel_ops::lookup::walk::Walk;
use semel_ops::record_json::offset::{OffsetRow, OffsetsWanted};
use semel_ops::store_url::Address;

use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::moment;
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{number, out, style};

/// Which offsets are to be listed.
#[derive(Debug)]
pub(crate) struct Offsets {
    pub(crate) store: Address,
    /// The tenant; without a pipeline, also those below it.
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: Option<String>,
    pub(crate) json: bool,
}

pub(crate) async fn list(plan: &Offsets) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let (mut rows, mut now) = (Vec::new(), Timestamp::from_micros(0));
    let bar = Bar::of_ids("looking");
    let pipeline = plan.pipeline.as_deref().map(Into::into);
    let wanted = OffsetsWanted { scope: plan.scope.clone(), pipeline };
    let mut walk = Walk::new(&*store, wanted.filter(), None);
    while let Some(page) = walk.next().await? {
        now = page.now;
        rows.extend(page.records.iter().filter_map(|record| wanted.read(record)));
        bar.walked(walk.after(), rows.len() as u64);
    }
    drop(bar);
    rows.sort_by(|one, other| (&one.scope, &one.stream).cmp(&(&other.scope, &other.stream)));
    if plan.json {
        return rows.iter().try_for_each(out::json);
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

fn table(rows: &[OffsetRow], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::elastic("pipeline", 8),
        Column::elastic("stream", 8),
        Column::number("position"),
        Column::elastic("last event", 10),
        Column::number("epoch"),
        Column::number("lag"),
        Column::number("since"),
    ]);
    for row in rows {
        let position = row.offset.position.map_or_else(|| "start".to_owned(), |at| at.to_string());
        table.row(vec![
            Cell::styled(&scope::shown(row.scope.iter().map(|part| &**part)), style::strong()),
            Cell::new(&row.stream),
            Cell::new(&position),
            Cell::new(row.offset.last_event.as_deref().unwrap_or("-")),
            Cell::new(&row.offset.epoch.to_string()),
            Cell::new(&row.offset.lag.map_or_else(|| "-".to_owned(), number::grouped)),
            Cell::styled(&moment::relative(row.at, now), style::quiet()),
        ]);
    }
    table
}
