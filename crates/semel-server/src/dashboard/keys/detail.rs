//! One record, if this visitor may see it, and its page.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, State as RecordState};
use semel::{Error, ErrorKind, Lapse};
use semel_http::HttpRecord;
use tokio::time::timeout;

use super::content;
use super::requeue::{self, Letter};
use super::response::content as shown_content;
use super::settle::flash;
use super::timeline::timeline;
use crate::access::Need;
use crate::dashboard::answer::{Refused, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::parts::{heading, lasting, moment, state};
use crate::dashboard::query::{Pairs, address};
use crate::dashboard::session::Visitor;
use crate::serve::note_key;
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::response::ResponseShown;
use semel_ops::format::{bytes, scope, span};
use semel_ops::lookup::{IdPrefix, walk};

/// How long the store may take.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(10);

pub(in crate::dashboard) async fn one(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
    query: Result<Query<Pairs>, QueryRejection>,
) -> Result<Response, Refused> {
    visitor.need(Need::See)?;
    let Found { record, now } = Found::by_id(&served, &visitor, &id).await?;
    let said = query.ok().and_then(|Query(query)| {
        query
            .iter()
            .find(|(name, _)| name == "said")
            .and_then(|(_, word)| flash(word).or_else(|| requeue::flash(word)))
    });
    let letter = Letter::of(&served, &visitor, &record).await?;
    let content = html! {
        @if let Some(said) = said { (said) }
        div.one #key data-live {
            (title(&record, now))
            (actions(&record, now, letter.as_ref(), &visitor))
            @if let Some(letter) = &letter { (letter.section(&record, &visitor)) }
            div.halves {
                section.card aria-labelledby="life-title" { h2 #life-title { "Life" } (timeline(&record, now)) }
                section.card aria-labelledby="facts-title" { h2 #facts-title { "Facts" } (facts(&record, now)) }
            }
            @if record.history().next().is_some() { (history(&record, now)) }
            @if record.finished_steps().next().is_some() { (steps(&record, &visitor)) }
            @if let Some(outcome) = record.outcome() { (content::outcome(&record, outcome, &visitor)) }
        }
    };
    Ok(shown(&visitor, &Frame { title: heading(&record), tab: Tab::Keys }, &content))
}

/// What it is called and where it belongs, with ways to its neighbours.
pub(super) fn title(record: &Record, now: Timestamp) -> Markup {
    let (key, within) = (&record.key, scope::shown(record.key.scope()));
    html! {
        div.head.key-head {
            div {
                p.of {
                    @if !within.is_empty() { a href=(address("/keys", [("scope", within.as_str())])) { bdi { (within) } } " / " }
                    a href=(address("/keys", [("scope", within.as_str()), ("operation", key.operation())])) { bdi { (key.operation()) } }
                }
                h1 { bdi { (heading(record)) } }
                @if let Some(http) = HttpRecord::of(record) {
                    p.muted data-test="label" { "Idempotency key " bdi { (key.name()) } ", from " bdi { (http.caller()) } }
                } @else if let Some(label) = &record.label { p.muted data-test="label" { bdi { (label) } } }
                p.id { code { (key.id()) } }
            }
            p.now { (state(record, now)) }
        }
    }
}

/// What may be done about it, in words first.
fn actions(record: &Record, now: Timestamp, letter: Option<&Letter>, visitor: &Visitor) -> Markup {
    let (class, said) = match letter {
        Some(_) => ("calm", "The event could not be processed, and was put aside. It counts as processed: its stream went on.".to_owned()),
        None => what_now(record, now),
    };
    let can_be_requeued = letter.is_some_and(Letter::can_be_requeued);
    let (is_held, is_running) =
        (matches!(record.state, RecordState::Held(_)), matches!(record.state, RecordState::Running(_)));
    let id = record.key.id();
    html! {
        section class={ "what-now " (class) } aria-label="Actions" {
            p { (said) }
            @if visitor.caller.may(Need::Act) {
                @if is_held { a.button.primary href={ "/keys/" (id) "/resolve" } { "Resolve…" } }
                @if is_running || is_held { a.button href={ "/keys/" (id) "/release" } { "Release…" } }
                @if can_be_requeued { a.button.primary href={ "/keys/" (id) "/requeue" } { "Requeue…" } }
            } @else if is_held || is_running || can_be_requeued {
                p.muted { "Acting on it needs the role operate." }
            }
        }
    }
}

fn what_now(record: &Record, now: Timestamp) -> (&'static str, String) {
    let next = record.attempt.saturating_add(1);
    match (&record.state, record.lapse) {
        (RecordState::Running(running), lapse) if running.lease_is_good(now) && record.outcome_is_unknown() => {
            let then = match lapse {
                Lapse::Rerun => "the next claim runs it again",
                Lapse::Hold => "it is held until an operator decides",
            };
            ("calm", format!("The run ended without knowing whether its effect landed. When the lease ends, {then}."))
        }
        (RecordState::Running(running), _) if running.lease_is_good(now) => {
            ("calm", "A run is in progress and renews its lease. Wait for it, unless you know that its process is gone.".to_owned())
        }
        (RecordState::Running(_), Lapse::Rerun) => {
            ("calm", format!("The run stopped renewing its lease. The next claim runs it as attempt {next}."))
        }
        // A run that lapsed under `hold` is shown as held.
        (RecordState::Running(_), Lapse::Hold) | (RecordState::Held(_), _) => (
            "urgent",
            "Held: it does not run again until an operator decides. Find out whether the effect landed. If it did, resolve it; \
             if it did not, release it."
                .to_owned(),
        ),
        (RecordState::Done(_), _) => {
            let response = HttpRecord::of(record).and_then(|http| http.response()).and_then(Result::ok);
            let said = response.as_ref().map_or_else(|| "A retry gets the stored outcome.".to_owned(), |response| ResponseShown::of(response).what_a_retry_gets());
            ("calm", said)
        }
        (RecordState::Released(_), _) => ("calm", format!("The next claim runs it as attempt {next}.")),
    }
}

fn facts(record: &Record, now: Timestamp) -> Markup {
    html! {
        dl.facts {
            div { dt { "Attempt" } dd {
                (record.attempt)
                @if record.attempts_forgiven > 0 { span.muted { ", of which " (record.attempts_forgiven) " no longer count against a bound" } }
            } }
            @if !record.state.grant().owner.is_empty() {
                div { dt { "Owner" } dd { bdi { (record.state.grant().owner) } } }
            }
            @if let Some(request) = HttpRecord::of(record).and_then(|http| http.first_request()) {
                div { dt { "First request" } dd data-test="first-request" { bdi { (request) } } }
            }
            @if let RecordState::Running(running) = &record.state {
                div { dt { "Fence" } dd { (running.grant.fence.get()) } }
                div { dt { "Lease" } dd { (span::shown(running.lease)) " from " (moment(running.leased_at, now)) } }
            }
            @if let RecordState::Done(done) = &record.state { div { dt { "Fence" } dd { (done.grant.fence.get()) } } }
            div { dt { "Duplicates" } dd { (grouped(record.duplicates.count)) span.muted { " answered without a run" } } }
            div { dt { "Mismatches" } dd { (mismatches(record)) } }
            div { dt { "On lapse" } dd { (match record.lapse { Lapse::Rerun => "rerun: the next claim runs again", Lapse::Hold => "hold: an operator decides" }) } }
            div { dt { "Retention" } dd { (span::shown(record.retention)) " once settled" } }
            div { dt { "Last write" } dd { (moment(record.changed_at, now)) span.muted { ", version " (record.version.get()) } } }
        }
    }
}

fn mismatches(record: &Record) -> Markup {
    let requests = counted(record.mismatches.fingerprints.len() as u64, "other request");
    html! {
        (grouped(record.mismatches.count))
        @if record.fingerprint.is_none() { span.muted { " (no fingerprint: every request matches)" } }
        @else if record.mismatches.count > 0 { span.muted { " by " (requests) " under this key" } }
    }
}

/// The attempts that are over, oldest first.
fn history(record: &Record, now: Timestamp) -> Markup {
    html! {
        section.card aria-labelledby="history-title" {
            h2 #history-title { "Ended attempts" }
            table.cards data-test="history" {
                thead { tr {
                    th.number scope="col" { "Attempt" } th scope="col" { "Owner" } th scope="col" { "From" }
                    th.number scope="col" { "Took" } th scope="col" { "Ended" } th scope="col" { "Reason" }
                } }
                tbody {
                    @for ended in record.history() {
                        tr {
                            th.number scope="row" { (ended.number) }
                            td data-label="Owner" { bdi { (ended.owner) } }
                            td data-label="From" { span { (moment(ended.from, now)) } }
                            td.number data-label="Took" { (lasting(ended.until.since(ended.from))) }
                            td data-label="Ended" { (ended.end.as_str()) }
                            td data-label="Reason" { bdi { (ended.reason) } }
                        }
                    }
                }
            }
        }
    }
}

fn steps(record: &Record, visitor: &Visitor) -> Markup {
    html! {
        section.card aria-labelledby="steps-title" {
            h2 #steps-title { "Finished steps" }
            table {
                thead { tr { th scope="col" { "Step" } th.number scope="col" { "Size" } th scope="col" { "Value" } } }
                tbody {
                    @for step in record.finished_steps() {
                        tr { th scope="row" { bdi { (step.name) } } td.number { (bytes::size(step.value.len() as u64)) } td {
                            @if visitor.caller.may(Need::Act) { (shown_content(&step.value)) } @else { span.muted { "shown to the role operate" } }
                        } }
                    }
                }
            }
        }
    }
}

/// A record, and the store's now when it was read.
pub(super) struct Found {
    pub(super) record: Arc<Record>,
    pub(super) now: Timestamp,
}

impl Found {
    /// The record with this id. One of a foreign scope is not there.
    pub(super) async fn by_id(served: &AppState, visitor: &Visitor, id: &str) -> Result<Self, Refused> {
        let id = id.parse::<IdPrefix>().ok().and_then(|id| id.whole());
        let id = id.ok_or_else(|| Refused::no_record(visitor))?;
        note_key(id);
        let found = timeout(STORE_TIMEOUT, walk::live(&**served.store, id)).await;
        let found =
            found.unwrap_or_else(|_| Err(no_answer())).map_err(|error| Refused::store(visitor, &error))?;
        match found.filter(|(record, _)| visitor.caller.reaches(&record.key)) {
            Some((record, now)) => Ok(Self { record, now }),
            None => Err(Refused::no_record(visitor)),
        }
    }
}

/// The store took too long.
pub(super) fn no_answer() -> Error {
    Error::new(ErrorKind::Unavailable, "the store gave no answer in time; see whether it runs")
}
