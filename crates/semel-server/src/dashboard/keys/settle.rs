//! Says what an action means, asks, and does what was confirmed, to just the version that was shown.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State as RecordState};
use semel::{OperatorAnswer, Outcome, OutcomeKind, Resolution, Result as SemelResult};
use serde::Deserialize;

use super::detail::{Found, title};
use crate::access::Need;
use crate::dashboard::answer::{Refused, see_other, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::session::{Posted, Signed, Visitor};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::format::{record, span};
use semel_ops::record_json::OperatorAnswerView;

/// The longest a reason may be.
const REASON_BYTES_MAX: usize = 2_048;

/// What the form of a release holds.
#[derive(Deserialize)]
pub(in crate::dashboard) struct Release {
    #[serde(default)]
    csrf: String,
    version: u64,
    #[serde(default)]
    reason: String,
}

/// What the form of a resolution holds.
#[derive(Deserialize)]
pub(in crate::dashboard) struct Resolve {
    #[serde(default)]
    csrf: String,
    version: u64,
    how: How,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Done,
    Release,
}

impl Signed for Release {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Signed for Resolve {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(in crate::dashboard) async fn release(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<Release>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let reason = reason(&visitor, &form.reason)?;
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let settled =
        operator_actions::release(&served, &visitor.caller, &record, reason, Some(form.version)).await;
    told(&visitor, &record, settled)
}

pub(in crate::dashboard) async fn resolve(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<Resolve>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let resolution = match form.how {
        How::Release => Resolution::Release { reason: reason(&visitor, &form.reason)?.into() },
        How::Done => Resolution::Done(Outcome::new(kind(&form.kind), typed(&form.outcome).into_bytes())),
    };
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let settled =
        operator_actions::resolve(&served, &visitor.caller, &record, resolution, Some(form.version)).await;
    told(&visitor, &record, settled)
}

fn kind(word: &str) -> OutcomeKind {
    OutcomeKind::from_word(if word.is_empty() { "success" } else { word })
}

/// What was typed. Browsers send every line's end as two characters, which nobody typed.
fn typed(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn reason<'a>(visitor: &Visitor, reason: &'a str) -> Result<&'a str, Refused> {
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX {
        return Err(Refused::invalid(
            visitor,
            "Say why, in a line: others will want to know. Nothing was changed.",
        ));
    }
    Ok(reason)
}

/// Back to the key, with what became of it.
fn told(
    visitor: &Visitor,
    record: &Record,
    answer: SemelResult<OperatorAnswer>,
) -> Result<Response, Refused> {
    let answer = OperatorAnswerView::from(answer.map_err(|error| Refused::store(visitor, &error))?);
    Ok(see_other(&format!("/keys/{}?said={}", record.key.id(), answer.as_str())))
}

/// What became of an action, told on the page that is shown after it. A word in the address, never free text: whoever makes
/// a link must not be able to put words into this server's mouth.
pub(super) fn flash(word: &str) -> Option<Markup> {
    let (class, said) = match OperatorAnswerView::ALL.into_iter().find(|answer| answer.as_str() == word)? {
        OperatorAnswerView::Released => ("flash fine", "Released. The next claim runs it as a new attempt."),
        OperatorAnswerView::Resolved => {
            ("flash fine", "Resolved. Every retry gets this outcome from now on.")
        }
        OperatorAnswerView::NotHeld => {
            ("flash warning", "Nothing was changed: it is not held any more. Here is how it is now.")
        }
        OperatorAnswerView::Changed => (
            "flash warning",
            "Nothing was changed: it is not as it was when you looked. Here is how it is now; decide again.",
        ),
    };
    Some(html! { p class=(class) role="status" data-test="flash" { (said) } })
}

pub(in crate::dashboard) async fn confirm_release(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    confirm(&served, &visitor, &id, "Release", release_question).await
}

pub(in crate::dashboard) async fn confirm_resolve(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    confirm(&served, &visitor, &id, "Resolve", resolve_question).await
}

/// The page that says what an action means, and asks.
async fn confirm(
    served: &AppState,
    visitor: &Visitor,
    id: &str,
    action: &str,
    question: fn(&Found, &Visitor) -> Markup,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let found = Found::by_id(served, visitor, id).await?;
    let content = html! {
        (title(&found.record, found.now))
        section.card.confirm aria-labelledby="confirm-title" { (question(&found, visitor)) }
    };
    Ok(shown(visitor, &Frame { title: action, tab: Tab::Keys }, &content))
}

fn release_question(Found { record, now }: &Found, visitor: &Visitor) -> Markup {
    html! {
        h2 #confirm-title { "Release it?" }
        @match &record.state {
            RecordState::Running(running) => { (what_release_means(running, *now)) (release_form(record, visitor)) }
            RecordState::Held(_) => { (HeldRelease) (release_form(record, visitor)) }
            RecordState::Released(_) => { p { "It is released already: the next claim runs." } (back(record)) }
            RecordState::Done(_) => {
                p { "It is done, and cannot be released: an outcome that somebody was told of is never taken back. It is forgotten \
                     when its retention ends, in " (record::left(record, *now)) "." }
                (back(record))
            }
        }
    }
}

fn resolve_question(Found { record, .. }: &Found, visitor: &Visitor) -> Markup {
    html! {
        h2 #confirm-title { "Resolve it" }
        @if matches!(record.state, RecordState::Held(_)) {
            p { "Find out first whether the effect landed. Then say which of the two it is:" }
            (resolve_form(record, visitor))
        } @else {
            p { "It is not held, and there is nothing to resolve: " (instead(record)) "." }
            (back(record))
        }
    }
}

/// What it means to release a held record.
struct HeldRelease;

impl maud::Render for HeldRelease {
    fn render(&self) -> Markup {
        html! { p { "The next claim runs it again. " strong { "If its effect landed after all, it happens twice." } } }
    }
}

fn what_release_means(running: &Running, now: Timestamp) -> Markup {
    let renewed = span::shown(now.since(running.leased_at));
    html! {
        @if running.lease_is_good(now) {
            p.flash.warning { "Its lease is good: it was renewed " (renewed) " ago, so the run is probably still going on." }
        } @else {
            p { "Its lease has lapsed: it was last renewed " (renewed) " ago." }
        }
        p {
            strong { "Releasing stops nobody." } " If " bdi { (running.grant.owner) } " still runs, it goes on beside the next claim until it notices; its \
            complete is refused as lost, and its outcome is not stored. Stop that process first if you can."
        }
    }
}

fn instead(record: &Record) -> &'static str {
    match &record.state {
        RecordState::Running(_) => "somebody holds a permit, which a release takes away",
        RecordState::Done(_) => "it has an outcome already, which never changes",
        RecordState::Released(_) => "the next claim runs it",
        RecordState::Held(_) => "look again",
    }
}

/// What was looked at: a run by its fence, which stays the same while it renews its lease, lapses and is held; anything
/// else, and a held record whose fence is not known, by its version.
fn shown_version(record: &Record) -> u64 {
    let fence = match &record.state {
        RecordState::Running(_) | RecordState::Held(_) => record.state.grant().fence.get(),
        RecordState::Done(_) | RecordState::Released(_) => 0,
    };
    if fence > 0 { fence } else { record.version.get() }
}

/// What every form of an action holds: whose it is, and which version of the record was looked at.
fn sealed(record: &Record, visitor: &Visitor) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(visitor.csrf());
        input type="hidden" name="version" value=(shown_version(record));
    }
}

fn release_form(record: &Record, visitor: &Visitor) -> Markup {
    html! {
        form method="post" action={ "/keys/" (record.key.id()) "/release" } {
            (sealed(record, visitor))
            (reason_field("reason", "released by hand"))
            div.buttons {
                button.danger type="submit" data-test="confirm" { "Release it" }
                a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" }
            }
        }
    }
}

fn resolve_form(record: &Record, visitor: &Visitor) -> Markup {
    let action = format!("/keys/{}/resolve", record.key.id());
    html! {
        div.choices {
            form.choice-card method="post" action=(action) aria-labelledby="landed" {
                h3 #landed { "The effect landed" }
                p { "It becomes done for good: every retry gets the outcome below. " strong { "That cannot be undone." } }
                (sealed(record, visitor))
                input type="hidden" name="how" value="done";
                div.field {
                    label for="kind" { "Kind of the outcome" }
                    select #kind name="kind" { option value="success" { "success" } option value="failure" { "failure" } }
                }
                div.field {
                    label for="outcome" { "Outcome that retries get, exactly as it stands here" }
                    textarea #outcome name="outcome" rows="5" spellcheck="false" placeholder="{\"id\": \"ch_1042\"}" {}
                }
                button.primary type="submit" data-test="confirm" { "Complete it" }
            }
            form.choice-card method="post" action=(action) aria-labelledby="not-landed" {
                h3 #not-landed { "It did not" }
                (HeldRelease)
                (sealed(record, visitor))
                input type="hidden" name="how" value="release";
                (reason_field("why-released", "looked, and it did not land"))
                button.danger type="submit" data-test="confirm-release" { "Release it" }
            }
        }
        p { a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" } }
    }
}

fn reason_field(id: &str, filled_in: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { "Why, for others and the audit log" }
            input id=(id) name="reason" value=(filled_in) required maxlength="512";
        }
    }
}

fn back(record: &Record) -> Markup {
    html! { p { a.button href={ "/keys/" (record.key.id()) } { "Back to the key" } } }
}
