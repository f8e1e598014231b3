//! How far pipelines have read their streams, and what they put aside.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel_stream::{EventId, EventRecord, EventState, Pipeline, Requeue, StreamOffset};
use tokio::time::timeout;

use super::answer::{Refused, shown};
use super::frame::{Frame, Tab};
use super::parts::{ago, labelled, nothing};
use super::query::address;
use super::session::Visitor;
use crate::access::Need;
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::{scope, span};
use semel_ops::lookup::walk;
use semel_ops::lookup::{PipelineCounted, PutAside};

/// How long the store may take to say what became of dead letters.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A dead letter, and the last run of its event as far as that is known.
type Letter<'a> = (&'a PutAside, Option<EventRecord>);

pub(super) async fn show(State(served): State<Arc<AppState>>, visitor: Visitor) -> Result<Response, Refused> {
    visitor.need(Need::List)?;
    let found = served.census.latest(visitor.caller.scope());
    // A store that does not answer leaves the last count, as of when it was made.
    let now = match walk::now(&**served.store).await {
        Ok(now) => now,
        Err(_) => found.as_of.unwrap_or_default(),
    };
    let mut letters = Vec::new();
    for (scope, pipeline) in found.pipelines.iter() {
        letters.push(what_became_of(&served, scope, &pipeline.dead_letters).await);
    }
    let content = html! {
        div.head { h1 { "Pipelines" } p.live-status #live-status hidden {} }
        div.stack #pipelines data-live {
            @match found.as_of {
                None => { (nothing("The first count of the store is still running.")) }
                Some(at) => {
                    p.as-of { "Counted " (ago(at, now)) " in " (span::shown(found.took)) ". Lag is what a consumer still had before it, over all that it reads, when its offset \
                        last moved; its metric " code { "semel_stream_lag" } " says what it is now." }
                    @for ((scope, pipeline), letters) in found.pipelines.iter().zip(&letters) { (one(scope, pipeline, letters, now, &visitor)) }
                    @if found.pipelines.iter().next().is_none() {
                        (nothing("No pipeline has read anything within your scope. Start one: semel consume --pipeline NAME --source file:events.jsonl --exec ./handle"))
                    }
                    @if found.pipelines.has_more { (nothing("There are more pipelines than this page lists: semel offsets lists all of them.")) }
                }
            }
        }
    };
    Ok(shown(&visitor, &Frame { title: "Pipelines", tab: Tab::Pipelines }, &content))
}

/// The dead letters of a pipeline that still are, or are being processed again.
async fn what_became_of<'a>(
    served: &AppState,
    path: &[Box<str>],
    letters: &'a [PutAside],
) -> Vec<Letter<'a>> {
    let unknown = || letters.iter().map(|letter| (letter, None)).collect();
    let Some((name, tenant)) = path.split_last().filter(|_| !letters.is_empty()) else { return unknown() };
    let Ok(pipeline) = Pipeline::builder(&served.semel, name).scope(tenant).build() else { return unknown() };
    let id = |letter: &PutAside| {
        let name = letter.event.clone();
        if letter.has_key { EventId::Keyed(name) } else { EventId::Keyless(name) }
    };
    let ids: Vec<_> = letters.iter().map(id).collect();
    let Ok(Ok(events)) = timeout(STORE_TIMEOUT, pipeline.events(&ids)).await else { return unknown() };
    let letters = letters.iter().zip(events).map(|(letter, event)| (letter, event.ok().flatten()));
    letters
        .filter(|(_, event)| event.as_ref().is_none_or(|event| event.state != EventState::Processed))
        .collect()
}

fn one(
    path: &[Box<str>],
    pipeline: &PipelineCounted,
    letters: &[Letter<'_>],
    now: Timestamp,
    visitor: &Visitor,
) -> Markup {
    let (name, tenant) = path.split_last().map_or(("", path), |(name, tenant)| (&**name, tenant));
    let (tenant, whole) = (joined(tenant), joined(path));
    let numbers = &pipeline.statistics;
    let events =
        |state| address("/keys", [("scope", whole.as_str()), ("operation", "receipt"), ("state", state)]);
    html! {
        section.card.pipeline {
            div.head {
                h2 { @if !tenant.is_empty() { span.of { bdi { (tenant) } " / " } } bdi { (name) } }
                p.muted { (counted(numbers.duplicates, "duplicate")) " passed over" }
            }
            ul.counts {
                li { a href=(events("done")) { (labelled("done", "processed")) strong { (grouped(numbers.receipts)) } } }
                li { a href=(events("running")) { (labelled("running", "running")) strong { (grouped(numbers.running)) } } }
                li { a href=(events("released")) { (labelled("released", "to be tried again")) strong { (grouped(numbers.released)) } } }
                li { a href=(events("held")) { (labelled("held", "held")) strong { (grouped(numbers.held)) } } }
                li class=[(numbers.dead_letters > 0).then_some("wrong")] { span { (labelled("lapsed", "dead letters")) strong { (grouped(numbers.dead_letters)) } } }
            }
            (offsets(&numbers.offsets, now))
            @if !letters.is_empty() { (put_aside(letters, numbers.dead_letters, now, visitor)) }
        }
    }
}

fn joined(parts: &[Box<str>]) -> String {
    scope::shown(parts.iter().map(|part| &**part))
}

fn offsets(offsets: &[StreamOffset], now: Timestamp) -> Markup {
    if offsets.is_empty() {
        return nothing("It has committed no offset.");
    }
    html! {
        div.table-box tabindex="0" role="region" aria-label="Offsets" {
            table.cards {
                thead {
                    tr {
                        th scope="col" { "Stream" }
                        th.number scope="col" { "Offset" }
                        th scope="col" { "Last event" }
                        th.number scope="col" { "Lag" }
                        th.number scope="col" { "Epoch" }
                        th.number scope="col" { "Moved" }
                    }
                }
                tbody {
                    @for stream in offsets {
                        tr {
                            th scope="row" { bdi { (stream.stream) } }
                            td.number data-label="Offset" { (stream.offset.position.map_or_else(|| "start".to_owned(), |at| at.to_string())) }
                            td.why data-label="Last event" { bdi { (stream.offset.last_event.as_deref().unwrap_or("–")) } }
                            td.number data-label="Lag" { (stream.offset.lag.map_or_else(|| "–".to_owned(), grouped)) }
                            td.number data-label="Epoch" { @if stream.offset.epoch == 0 { "shared" } @else { (stream.offset.epoch) } }
                            td.number data-label="Moved" { (ago(stream.at, now)) }
                        }
                    }
                }
            }
        }
    }
}

fn put_aside(letters: &[Letter<'_>], all: u64, now: Timestamp, visitor: &Visitor) -> Markup {
    let may_act = visitor.caller.may(Need::Act);
    html! {
        h3 { "Dead letters" @if all > letters.len() as u64 { span.muted { ", the newest " (letters.len()) " of " (grouped(all)) } } }
        ul.letters {
            @for (letter, event) in letters {
                li {
                    a.key href={ "/keys/" (letter.id) } { bdi { (letter.event) } }
                    span.muted { "after " (counted(u64::from(letter.attempts), "attempt")) ", " (ago(letter.at, now)) }
                    @if let Some(said) = event.as_ref().and_then(requeued) { span.muted data-test="requeued" { (said) } }
                    @if may_act && event.as_ref().is_some_and(|event| matches!(event.requeue_answer(), Requeue::Requeued { .. })) {
                        a.button href={ "/keys/" (letter.id) "/requeue" } aria-label={ "Requeue " (letter.event) } { "Requeue…" }
                    }
                    @if let Some(error) = &letter.error { p.said { bdi { (error) } } }
                }
            }
        }
    }
}

/// Whether it was requeued, and what became of that.
fn requeued(event: &EventRecord) -> Option<String> {
    match (event.is_waiting, event.requeue) {
        (true, _) => Some("requeued, waits for a consumer".to_owned()),
        (false, 0) => None,
        (false, number) => Some(format!("requeue {number}: {}", event.state.as_str())),
    }
}
