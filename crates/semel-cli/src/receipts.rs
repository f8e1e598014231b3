//! `semel receipts`: which events a pipeline has processed, put aside, or waits with; and what may be done about one of them.
//!
//! - [`show`]: one event. [`requeue`]: dead letters that are sent back.

mod requeue;
mod show;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use clap::Subcommand;
use console::Style;
use semel::clock::Timestamp;
use semel::record::StateKind;
use semel_ops::format::scope;
use semel_ops::lookup::walk;
use semel_ops::operator::EventNoted;
use semel_ops::record_json::Content;
use semel_ops::record_json::receipt::ReceiptView;
use semel_stream::{
    EventId, EventRecord, EventState, KeptLetter, Pipeline, ReceiptFilter, ReceiptsAfter, Statistics,
};

use crate::args::{Scope, at_least_one, refused};
use crate::audit_arg::AuditArg;
use crate::keys::{self, Found, Shown};
use crate::operator::{Actor, PipelineRef};
use crate::store_arg::{StoreArg, StoreHandle};
use crate::terminal::{Bar, Cell, Column, Consent, Table, bytes, counted, moment, out, style, text};
use requeue::RequeueArgs;

const CHANGED: &str = "it changed meanwhile, and nothing was done. Look again with `semel receipts show`";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ReceiptsArgs {
    #[command(subcommand)]
    command: Option<EventCommand>,
    /// The pipeline
    #[arg(required = true)]
    pipeline: Option<String>,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// Only events that could not be processed and were put aside
    #[arg(long)]
    dead: bool,
    /// Only events that wait for a person
    #[arg(long)]
    held: bool,
    /// Only the event with this key
    #[arg(long, value_name = "KEY")]
    event: Option<String>,
    /// How many events at most: the newest
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct EventArg {
    /// The pipeline
    pipeline: String,
    /// The key of the event, as `semel receipts` shows it
    event: String,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
}

#[derive(Debug, Subcommand)]
enum EventCommand {
    /// Show the whole life of one event in a pipeline; of a dead letter, with its payload
    #[command(after_help = "Examples:\n  \
        semel receipts show orders order-1042 --outcome     with what the command printed")]
    Show {
        #[command(flatten)]
        event: EventArg,
        /// Show what the command printed
        #[arg(long)]
        outcome: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Have dead letters processed again; asks first
    ///
    /// Written into the store, where consumers of the pipeline find it: a running one within seconds, else the next that starts.
    /// The event runs out of order, with the payload that its receipt keeps, once, and under a key of its own: systems further
    /// down see another `SEMEL_DERIVED_KEY`. The receipt of the first run stays as it is.
    #[command(after_help = "Examples:\n  \
        semel receipts requeue orders order-1042            shows why it was put aside, and asks\n  \
        semel receipts requeue orders --all-dead            how many, and the first ten\n  \
        semel receipts requeue orders --all-dead --limit 10 --yes --audit audit.jsonl")]
    Requeue(RequeueArgs),
    /// Note an event as processed, without processing it; asks first
    ///
    /// For events that are to be passed over, and for held ones whose effect you know to have happened. It cannot be undone.
    #[command(after_help = "Examples:\n  \
        semel receipts record orders order-1042             another delivery of it is a duplicate")]
    Record {
        #[command(flatten)]
        event: EventArg,
        #[command(flatten)]
        audit: AuditArg,
        #[command(flatten)]
        consent: Consent,
    },
    /// Have a held event processed at its next delivery; asks first
    ///
    /// For an event whose effect you know not to have happened. One that was put aside is processed again by `requeue`.
    #[command(after_help = "Examples:\n  \
        semel receipts release orders order-1042            shows what it means, and asks")]
    Release {
        #[command(flatten)]
        event: EventArg,
        /// Why, for whoever looks at it next
        #[arg(long, value_name = "TEXT", default_value = keys::REASON)]
        reason: String,
        #[command(flatten)]
        audit: AuditArg,
        #[command(flatten)]
        consent: Consent,
    },
}

impl ReceiptsArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        match self.command {
            None => self.list(store).await,
            Some(EventCommand::Show { event, outcome, json }) => {
                let (store, found) = event.known(store).await?;
                if outcome {
                    store.must_show_content()?;
                }
                show::show(&found, &event.pipeline, Shown { outcome, json })
            }
            Some(EventCommand::Requeue(args)) => args.run(store).await,
            Some(EventCommand::Record { event, audit, consent }) => {
                event.record(store, &audit, consent).await
            }
            Some(EventCommand::Release { event, reason, audit, consent }) => {
                let (store, Event { found, .. }) = event.known(store).await?;
                keys::release(Actor::on(&store, &audit)?, &found, &reason, consent).await
            }
        }
    }

    async fn list(self, store: &StoreArg) -> Result<()> {
        let Some(name) = self.pipeline else { return Err(refused("which pipeline?").into()) };
        let mut newest = Newest::of(at_least_one("--limit", self.limit)?.get());
        let address = store.address()?;
        let (store, pipeline) = store.open_pipeline(&name, self.scope).await?;
        let mut states = Vec::new();
        states.extend(self.dead.then_some(EventState::DeadLetter));
        states.extend(self.held.then_some(EventState::Held));
        let filter = ReceiptFilter { states, event: self.event.map(Into::into) };
        let (mut counts, mut after, mut seen) = (Statistics::default(), None, 0_u64);
        let bar = Bar::of_ids("looking");
        loop {
            let page = ReceiptsAfter { after, limit: walk::PAGE_RECORDS_MAX };
            let page = pipeline.receipts(&filter, page).await?;
            for (id, error) in &page.damaged {
                eprintln!("warning: the record {id} cannot be read: {error}");
            }
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
        if self.json {
            let content = store.content();
            return events.iter().try_for_each(|event| out::json(&ReceiptView::of(event, content)));
        }
        let now = walk::now(&**store).await?;
        if seen == 0 {
            let is_any = filter.states.is_empty() && filter.event.is_none();
            let which = if is_any { "no events" } else { "no such events" };
            return out::quiet(&format!("{name} has {which} in {address}."));
        }
        table(&events, now, store.content()).print()?;
        out::quiet(&footer(&counts, seen, events.len() as u64))
    }
}

/// The newest of many, in bounded memory.
struct Newest {
    limit: usize,
    events: BTreeMap<(Timestamp, Box<str>), EventRecord>,
}

impl Newest {
    fn of(limit: usize) -> Self {
        Self { limit, events: BTreeMap::new() }
    }

    fn add(&mut self, event: EventRecord) {
        self.events.insert((event.since, event.event.clone()), event);
        if self.events.len() > self.limit {
            self.events.pop_first();
        }
    }

    /// The newest first.
    fn sorted(self) -> Vec<EventRecord> {
        self.events.into_values().rev().collect()
    }
}

fn table(events: &[EventRecord], now: Timestamp, content: Content) -> Table {
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
            Cell::styled(&state(event), colour(event.state)),
            Cell::new(&event.attempts.to_string()),
            Cell::new(&event.duplicates.to_string()),
            Cell::new(&moment::relative(event.since, now)),
            Cell::new(&said(event, content)),
        ]);
    }
    table
}

/// The state of its last run, and whether that was a requeue or is to be one.
fn state(event: &EventRecord) -> String {
    match (event.is_waiting, event.requeue) {
        (true, _) => "requeued, waits".to_owned(),
        (false, 0) => event.state.as_str().to_owned(),
        (false, number) => format!("{}, requeue {number}", event.state.as_str()),
    }
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
fn said(event: &EventRecord, content: Content) -> String {
    match (&event.outcome, &event.who_or_why) {
        (Some(outcome), _) if event.state == EventState::DeadLetter => KeptLetter::read(outcome)
            .and_then(|letter| letter.error)
            .unwrap_or_else(|| "no reason was recorded".to_owned()),
        (Some(outcome), _) if content == Content::Hidden => bytes::size(outcome.bytes().len() as u64),
        (Some(outcome), _) => match std::str::from_utf8(outcome.bytes()) {
            Ok(text) => text.lines().next().unwrap_or_default().trim().to_owned(),
            Err(_) => bytes::size(outcome.bytes().len() as u64),
        },
        (None, Some(why)) => why.to_string(),
        (None, None) => String::new(),
    }
}

fn footer(counts: &Statistics, seen: u64, shown: u64) -> String {
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

/// An event, with the record of its last run.
struct Event {
    event: EventRecord,
    found: Found,
}

/// The event with this key, or else the one without a key at this place.
async fn find(pipeline: &Pipeline, name: &str, now: Timestamp) -> Result<Option<Event>> {
    let ids = [EventId::Keyed(name.into()), EventId::Keyless(name.into())];
    for event in pipeline.events(&ids).await? {
        let Some(event) = event? else { continue };
        let key = pipeline.run_key(&event.id(), event.requeue)?;
        let record = pipeline.semel().get(&key).await?;
        return Ok(record.map(|record| Event { event, found: Found { record: Arc::new(record), now } }));
    }
    Ok(None)
}

fn no_event(pipeline: &str, event: &str) -> anyhow::Error {
    anyhow!(
        "{} has no record of {}: it was not processed, or its retention is over. Keys must be exact (one that was text \
         in JSON has its quotes: '\"order-7\"'); `semel receipts {0}` shows what there is",
        text::shown(pipeline),
        text::shown(event),
    )
}

impl EventArg {
    /// Its pipeline, on a store that is there, and its record, if there is one.
    async fn find(&self, store: &StoreArg) -> Result<(StoreHandle, Pipeline, Option<Event>)> {
        let (store, pipeline) = store.open_pipeline(&self.pipeline, self.scope.clone()).await?;
        let now = walk::now(&**store).await?;
        let event = find(&pipeline, &self.event, now).await?;
        Ok((store, pipeline, event))
    }

    /// The record of the event, which must be there.
    async fn known(&self, store: &StoreArg) -> Result<(StoreHandle, Event)> {
        let (store, _, event) = self.find(store).await?;
        Ok((store, event.ok_or_else(|| no_event(&self.pipeline, &self.event))?))
    }

    /// Notes an event as processed.
    async fn record(&self, store: &StoreArg, audit: &AuditArg, consent: Consent) -> Result<()> {
        let (store, pipeline, found) = self.find(store).await?;
        let actor = Actor::on(&store, audit)?;
        let name = format!("event {} of {}", text::shown(&self.event), text::shown(&self.pipeline));
        let standing = found.as_ref().map_or_else(|| "It was not processed yet.".to_owned(), standing);
        let state = found.as_ref().map(|event| event.found.record.state.kind());
        if state == Some(StateKind::Done) {
            return out::line(&format!("{name} has a receipt already, and nothing was changed. {standing}"));
        }
        actor.must_act()?;
        let what = format!(
            "{name}: {standing}\nIt becomes processed for good, without being processed now: another delivery of it is a duplicate,\n\
             and its offset moves on. That cannot be undone."
        );
        consent.ask(&what, "Note it as processed?")?;
        let scope = self.scope.clone().unwrap_or_default();
        let of = PipelineRef { pipeline: &pipeline, scope: &scope, name: &self.pipeline };
        match actor.record_event(of, &self.event).await? {
            EventNoted::Recorded | EventNoted::AlreadyRecorded => {
                out::line(&format!("Noted: {name} counts as processed."))
            }
            EventNoted::Busy { owner } => bail!(
                "nothing was changed: {} is processing it. Wait for that one, or stop it and `semel receipts release` the event",
                text::shown(&owner)
            ),
            EventNoted::Changed => bail!(CHANGED),
        }
    }
}

fn standing(Event { event, found }: &Event) -> String {
    let since = moment::relative(event.since, found.now);
    let why = event.who_or_why.as_deref().map_or_else(String::new, |why| format!(": {}", text::shown(why)));
    format!("It is {} since {since}, attempt {}{why}.", event.state.as_str(), event.attempts)
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
            outcome: Some(Outcome::success("paid\nmore")),
            who_or_why: None,
            has_key: true,
            requeue: 0,
            is_waiting: false,
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
        assert_eq!(said(&event, Content::Base64), "paid");
        event.state = EventState::DeadLetter;
        event.outcome = Some(semel_stream::dead_letter(3, "too large"));
        assert_eq!(said(&event, Content::Base64), "too large");
        let view = ReceiptView::of(&event, Content::Base64);
        assert_eq!((view.error.as_deref(), &*view.state), (Some("too large"), "dead_letter"));
    }
}
