//! A dead letter on the page of its record: why it was put aside, what became of it since, and how it is sent back.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::record::Record;
use semel_stream::{EventRecord, KeptLetter, KeptPayload, Pipeline, Requeue, RequeueAsk};
use serde::Deserialize;
use tokio::time::timeout;

use super::detail::{Found, STORE_TIMEOUT, no_answer, title};
use super::settle::{reason, reason_field};
use crate::access::Need;
use crate::dashboard::answer::{Refused, see_other, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::session::{Posted, Signed, Visitor};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::format::bytes::size;
use semel_ops::record_json::dead_letter::RequeueView;

/// The record of an event that was put aside: what it keeps, and the event's last run.
pub(super) struct Letter {
    kept: KeptLetter,
    pipeline: Pipeline,
    last: EventRecord,
}

/// What the form holds.
#[derive(Deserialize)]
pub(in crate::dashboard) struct RequeueForm {
    #[serde(default)]
    csrf: String,
    /// How often the event had been requeued when the form was shown.
    requeues: u32,
    #[serde(default)]
    reason: String,
}

impl Signed for RequeueForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Letter {
    /// The dead letter in a record; `None` if there is none.
    pub(super) async fn of(
        served: &AppState,
        visitor: &Visitor,
        record: &Record,
    ) -> Result<Option<Self>, Refused> {
        let Some(kept) = record.outcome().and_then(KeptLetter::read) else { return Ok(None) };
        let Some((pipeline, event)) = Pipeline::of_record(&served.semel, &record.key) else {
            return Ok(None);
        };
        let events = [event];
        let found = timeout(STORE_TIMEOUT, pipeline.events(&events)).await;
        let found =
            found.unwrap_or_else(|_| Err(no_answer())).and_then(|mut found| found.pop().unwrap_or(Ok(None)));
        // Where the first run is past its retention, this is the last that is known of the event.
        let last = found.map_err(|error| Refused::store(visitor, &error))?;
        let last = last.unwrap_or_else(|| EventRecord::read(record));
        Ok(Some(Self { kept, pipeline, last }))
    }

    /// Why it was put aside, where it came from, and what became of it since.
    pub(super) fn section(&self, record: &Record, visitor: &Visitor) -> Markup {
        let kept = &self.kept;
        let place = kept.position.map_or_else(String::new, |position| format!(" at {position}"));
        html! {
            section.card aria-labelledby="letter-title" data-test="dead-letter" {
                h2 #letter-title { "Dead letter" }
                dl.facts {
                    div.wide { dt { "Error" } dd { bdi { (kept.error.as_deref().unwrap_or("not recorded")) } } }
                    @if let Some(attempts) = kept.attempts { div { dt { "Attempts" } dd { (attempts) } } }
                    @if let Some(stream) = &kept.stream { div { dt { "From" } dd { bdi { (stream) } (place) } } }
                    @if let Some(id) = &kept.id { div { dt { "Event id" } dd { bdi { (id) } } } }
                    div { dt { "Key" } dd { bdi { (kept.key.as_deref().unwrap_or("none")) } } }
                    div { dt { "Payload" } dd { (payload(&kept.payload)) } }
                    @if visitor.caller.may(Need::Content) {
                        @for header in &kept.headers { div { dt { bdi { (header.name) } } dd { bdi { (header.value) } } } }
                    }
                }
                (self.since(record))
            }
        }
    }

    /// What became of it since.
    fn since(&self, record: &Record) -> Markup {
        let last = &self.last;
        let run = self.pipeline.run_key(&last.id(), last.requeue).ok().filter(|run| *run != record.key);
        html! {
            @if let Some(run) = run {
                p data-test="requeued" { "It was requeued, and is now: " strong { (last.state.as_str()) } ", as "
                    a href={ "/keys/" (run.id()) } { "requeue " (last.requeue) } "." }
            }
            @if last.is_waiting { p data-test="requeued" { "It was requeued, and waits for a consumer of the pipeline." } }
        }
    }

    /// Whether it can be sent back now.
    pub(super) fn can_be_requeued(&self) -> bool {
        matches!(self.last.requeue_answer(), Requeue::Requeued { .. })
    }

    fn question(&self, record: &Record, visitor: &Visitor) -> Markup {
        let answer = self.last.requeue_answer();
        html! {
            h2 #confirm-title { "Requeue it?" }
            @if let Requeue::Requeued { number } = answer {
                p { "It was put aside: " bdi { (self.kept.error.as_deref().unwrap_or("no reason was recorded")) } }
                p { "A consumer of the pipeline processes it again, out of order and with the payload that was kept, as requeue " (number) ": a running \
                     one within seconds, else the next that starts. " strong { "If a run before had its effect after all, it happens twice." } }
                form method="post" action={ "/keys/" (record.key.id()) "/requeue" } {
                    input type="hidden" name="csrf" value=(visitor.csrf());
                    input type="hidden" name="requeues" value=(self.last.requeue);
                    (reason_field("reason", "reason", "the cause is mended"))
                    div.buttons {
                        button.primary type="submit" data-test="confirm" { "Requeue it" }
                        a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" }
                    }
                }
            } @else {
                p { (RequeueView::from(answer).message) }
                p { a.button href={ "/keys/" (record.key.id()) } { "Back to the key" } }
            }
        }
    }
}

fn payload(payload: &KeptPayload) -> String {
    match payload {
        KeptPayload::Whole(payload) => format!("{}, kept whole", size(payload.len() as u64)),
        KeptPayload::TooLarge { bytes, sha256 } => {
            format!("not kept: {}, SHA-256 {sha256}; send it anew, under a key of its own", size(*bytes))
        }
        KeptPayload::Unknown => "not kept; send it anew, under a key of its own".to_owned(),
    }
}

pub(in crate::dashboard) async fn confirm_requeue(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let found = Found::by_id(&served, &visitor, &id).await?;
    let letter = Letter::of(&served, &visitor, &found.record).await?;
    let content = html! {
        (title(&found.record, found.now))
        section.card.confirm aria-labelledby="confirm-title" {
            @match &letter {
                Some(letter) => { (letter.question(&found.record, &visitor)) }
                None => {
                    h2 #confirm-title { "Requeue it?" }
                    p { "It is no dead letter: there is nothing to requeue." }
                    p { a.button href={ "/keys/" (found.record.key.id()) } { "Back to the key" } }
                }
            }
        }
    };
    Ok(shown(&visitor, &Frame { title: "Requeue", tab: Tab::Keys }, &content))
}

pub(in crate::dashboard) async fn requeue(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<RequeueForm>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let reason = reason(&visitor, &form.reason)?.to_owned();
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let Some((pipeline, event)) = Pipeline::of_record(&served.semel, &record.key) else {
        return Ok(see_other(&format!(
            "/keys/{}?said={}",
            record.key.id(),
            RequeueView::not_dead().decision
        )));
    };
    let ask = RequeueAsk { event, requeues_before: Some(form.requeues) };
    let answer = operator_actions::requeue(&served, &visitor.caller, pipeline, ask, reason).await;
    let answer = RequeueView::from(answer.map_err(|error| Refused::store(&visitor, &error))?);
    Ok(see_other(&format!("/keys/{}?said={}", record.key.id(), answer.decision)))
}

/// What became of a requeue, by a word in the address and never by free text: a link from elsewhere must not put words on a
/// page.
pub(super) fn flash(word: &str) -> Option<Markup> {
    let message = RequeueView::message_of(word)?;
    let class = if word == "requeued" { "flash fine" } else { "flash warning" };
    Some(html! { p class=(class) role="status" data-test="flash" { (message) } })
}
