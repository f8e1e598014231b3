//! The newest events of a pipeline, and all of them counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::Result;
use console::Style;
use semel::Semel;
use semel::clock::Timestamp;
use semel_ops::lookup::walk;
use semel_ops::record_json::Content;
use semel_ops::record_json::receipt::{ReceiptView, error};
use semel_ops::store_url::Address;
use semel_stream::{EventRecord, EventState, Pipeline, ReceiptFilter, ReceiptsAfter, Statistics};

use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::moment;
use crate::terminal::number::counted;
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{bytes, out, style};

/// Which events are to be listed.
#[derive(Debug)]
pub(crate) struct Receipts {
    pub(crate) store: Address,
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: String,
    /// In these states; empty for any.
    pub(crate) states: Vec<EventState>,
    pub(crate) event: Option<Box<str>>,
    pub(crate) limit: usize,
    pub(crate) json: bool,
}

pub(crate) async fn list(plan: &Receipts) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let semel = Semel::builder_shared(store.store()).build()?;
    let pipeline = Pipeline::builder(&semel, &plan.pipeline).scope(&plan.scope).build()?;
    let filter = ReceiptFilter { states: plan.states.clone(), event: plan.event.clone() };
    let (mut newest, mut counts) = (Newest::of(plan.limit), Statistics::default());
    let (mut after, mut seen) = (None, 0_u64);
    let bar = Bar::of_ids("looking");
    loop {
        let page = ReceiptsAfter { after, limit: walk::PAGE_RECORDS_MAX };
        let page = pipeline.receipts(&filter, page).await?;
        for event in page.events {
            seen = seen.saturating_add(1);
            counts.count(&event);
            newest.add(event);
        }
        after = page.next;
        bar.walked(after, seen);
        if after.is_none() {
            break;
        }
    }
    drop(bar);
    let events = newest.sorted();
    if plan.json {
        return events.iter().try_for_each(|event| out::json(&ReceiptView::of(event, Content::Base64)));
    }
    let now = walk::now(&*store).await?;
    if !events.is_empty() {
        out::print(&(table(&events, now).lines(out::width()).join("\n") + "\n"))?;
    }
    out::line(&style::quiet().apply_to(footer(plan, &counts, seen, events.len() as u64)).to_string())
}

/// The newest of many, in bounded memory.
struct Newest {
    limit: usize,
    heap: BinaryHeap<Reverse<Dated>>,
}

/// In the order of time.
struct Dated(EventRecord);

impl Newest {
    fn of(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new() }
    }

    fn add(&mut self, event: EventRecord) {
        self.heap.push(Reverse(Dated(event)));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The newest first.
    fn sorted(self) -> Vec<EventRecord> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(Dated(event))| event).collect()
    }
}

impl Dated {
    fn key(&self) -> (Timestamp, &str) {
        (self.0.since, &self.0.event)
    }
}

impl PartialEq for Dated {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Dated {}

impl PartialOrd for Dated {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dated {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

fn table(events: &[EventRecord], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::elastic("event", 12),
        Column::whole("state"),
        Column::number("attempts"),
        Column::number("duplicates"),
        Column::number("since"),
        Column::elastic("what it said", 12),
    ]);
    for event in events {
        table.row(vec![
            Cell::styled(&event.event, style::strong()),
            Cell::styled(event.state.as_str(), colour(event.state)),
            Cell::new(&event.attempts.to_string()),
            Cell::new(&event.duplicates.to_string()),
            Cell::new(&moment::relative(event.since, now)),
            Cell::new(&said(event)),
        ]);
    }
    table
}

fn colour(state: EventState) -> Style {
    match state {
        EventState::Processed | EventState::Released => style::quiet(),
        EventState::DeadLetter => style::wrong(),
        EventState::Running => style::fine(),
        EventState::Held => style::waiting(),
    }
}

/// What the command printed, why it failed, or who works on it: enough to know it again.
fn said(event: &EventRecord) -> String {
    match (&event.outcome, &event.who_or_why) {
        (Some(outcome), _) if event.state == EventState::DeadLetter => {
            error(outcome).unwrap_or_else(|| "nobody knows why".to_owned())
        }
        (Some(outcome), _) => match std::str::from_utf8(outcome.bytes()) {
            Ok(text) => text.lines().next().unwrap_or_default().trim().to_owned(),
            Err(_) => bytes::size(outcome.bytes().len() as u64),
        },
        (None, Some(why)) => why.to_string(),
        (None, None) => String::new(),
    }
}

fn footer(plan: &Receipts, counts: &Statistics, seen: u64, shown: u64) -> String {
    if seen == 0 {
        let which =
            if plan.states.is_empty() && plan.event.is_none() { "no events" } else { "no such events" };
        return format!("{} has {which} in {}.", plan.pipeline, plan.store);
    }
    let mut parts = vec![format!("{} processed", counts.receipts)];
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    part(counts.dead_letters, "put aside");
    part(counts.running, "running");
    part(counts.released, "released, to be tried again");
    part(counts.held, "held: they wait for a person");
    let more = if shown < seen {
        format!("; the newest {shown} are shown: --limit N for more")
    } else {
        String::new()
    };
    format!("{}: {}{more}.", counted(seen, "event"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use semel::Outcome;

    use super::*;

    fn event(name: &str, micros: u64) -> EventRecord {
        EventRecord {
            event: name.into(),
            state: EventState::Processed,
            since: Timestamp::from_micros(micros),
            attempts: 1,
            duplicates: 0,
            outcome: Some(Outcome::success(*b"paid\nmore")),
            who_or_why: None,
        }
    }

    #[test]
    fn the_newest_are_kept_and_the_newest_of_them_comes_first() {
        let mut newest = Newest::of(3);
        for (at, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            newest.add(event(name, [30, 50, 10, 40, 20][at]));
        }
        let names: Vec<_> = newest.sorted().into_iter().map(|event| event.event).collect();
        assert_eq!(names, ["b".into(), "d".into(), "a".into()] as [Box<str>; 3]);
    }

    #[test]
    fn an_event_says_its_first_line_and_a_dead_letter_its_error() {
        let mut event = event("a", 1);
        assert_eq!(said(&event), "paid");
        event.state = EventState::DeadLetter;
        event.outcome = Some(semel_stream::dead_letter(3, "too large"));
        assert_eq!(said(&event), "too large");
        let view = ReceiptView::of(&event, Content::Base64);
        assert_eq!((view.error.as_deref(), &*view.state), (Some("too large"), "dead_letter"));
    }
}
