//! Says what an action means, asks, and does what was confirmed, to just the version that was shown.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State as RecordState};
use semel::{OperatorAnswer, Outcome, OutcomeKind, Result as SemelResult};
use semel_http::HttpRecord;
use serde::Deserialize;

use super::detail::{Found, title};
use crate::access::Need;
use crate::dashboard::answer::{Refused, see_other, shown, with_status};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::session::{Posted, Signed, Visitor};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::format::{record, span};
use semel_ops::operator::{Settlement, SuppliedResponse};
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
    #[serde(flatten)]
    response: TypedResponse,
    #[serde(default)]
    reason: String,
}

/// A response as it was typed.
#[derive(Clone, Default, Deserialize)]
pub(super) struct TypedResponse {
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) headers: String,
    #[serde(default)]
    pub(super) content_type: String,
    #[serde(default)]
    pub(super) body: String,
}

impl TypedResponse {
    /// The response, if a retry gets exactly it; else what to change.
    pub(super) fn supplied(&self) -> Result<SuppliedResponse, String> {
        let status = self.status.trim();
        let status =
            status.parse().map_err(|_| format!("`{status}` is not an HTTP status; use 200 to 599"))?;
        let lines = self.headers.lines().map(str::trim).filter(|line| !line.is_empty());
        let headers = lines.map(SuppliedResponse::header_line).collect::<Result<_, _>>()?;
        let mut response = SuppliedResponse { status, headers, body: typed(&self.body).into() };
        let content_type = self.content_type.trim();
        if !content_type.is_empty() {
            if response.has_header("content-type") {
                return Err("the content type is given twice; remove it from the headers".to_owned());
            }
            response.headers.push(("content-type".to_owned(), content_type.to_owned()));
        }
        response.outcome().map_err(|error| error.to_string())?;
        Ok(response)
    }
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
    after(&visitor, &record, settled)
}

pub(in crate::dashboard) async fn resolve(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<Resolve>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let found = Found::by_id(&served, &visitor, &id).await?;
    let settlement = match form.how {
        How::Release => Settlement::Release { reason: reason(&visitor, &form.reason)?.into() },
        How::Done if HttpRecord::of(&found.record).is_some() => match form.response.supplied() {
            Ok(response) => Settlement::Response(response),
            Err(wrong) => return Ok(asked_again(&found, &visitor, &form.response, &wrong)),
        },
        How::Done => Settlement::Outcome(typed_outcome(&form.kind, &form.outcome)),
    };
    let settled =
        operator_actions::resolve(&served, &visitor.caller, &found.record, settlement, Some(form.version))
            .await;
    after(&visitor, &found.record, settled)
}

/// The form with what was typed, and what to change in it. Nothing was written.
fn asked_again(found: &Found, visitor: &Visitor, response: &TypedResponse, wrong: &str) -> Response {
    let content = html! {
        (title(&found.record, found.now))
        section.card.confirm aria-labelledby="confirm-title" {
            h2 #confirm-title { "Resolve it" }
            p.flash.wrong #wrong role="alert" data-test="flash" { "Nothing was changed: " (wrong) "." }
            (resolve_form(&found.record, visitor, response))
        }
    };
    with_status(StatusCode::BAD_REQUEST, visitor, &Frame { title: "Resolve", tab: Tab::Keys }, &content)
}

/// The outcome that was typed, with the word for its kind.
pub(super) fn typed_outcome(kind: &str, text: &str) -> Outcome {
    let kind = OutcomeKind::from_word(if kind.is_empty() { "success" } else { kind });
    Outcome::new(kind, typed(text).into_bytes())
}

/// What was typed. Browsers send the end of a line as CR LF.
fn typed(text: &str) -> String {
    text.replace("\r\n", "\n")
}

pub(super) fn reason<'a>(visitor: &Visitor, reason: &'a str) -> Result<&'a str, Refused> {
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX {
        return Err(Refused::invalid(visitor, "Give a reason of one line. Nothing was changed."));
    }
    Ok(reason)
}

/// Back to the key, with the result of the action.
fn after(
    visitor: &Visitor,
    record: &Record,
    answer: SemelResult<OperatorAnswer>,
) -> Result<Response, Refused> {
    let answer = OperatorAnswerView::from(answer.map_err(|error| Refused::store(visitor, &error))?);
    Ok(see_other(&format!("/keys/{}?said={}", record.key.id(), answer.as_str())))
}

/// The result of an action, on the page that is shown after it. A word in the address, never free text: a link from elsewhere
/// must not put words on this page.
pub(super) fn flash(word: &str) -> Option<Markup> {
    let (class, said) = match OperatorAnswerView::ALL.into_iter().find(|answer| answer.as_str() == word)? {
        OperatorAnswerView::Released => ("flash fine", "Released. The next claim runs it as a new attempt."),
        OperatorAnswerView::Resolved => {
            ("flash fine", "Resolved. Every retry gets this outcome from now on.")
        }
        OperatorAnswerView::NotHeld => {
            ("flash warning", "Nothing was changed: it is no longer held. This is its present state.")
        }
        OperatorAnswerView::Changed => (
            "flash warning",
            "Nothing was changed: the record has changed since the form was shown. This is its present state; decide again.",
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
                p { "It is done, and cannot be released: a stored outcome never changes. It is forgotten \
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
            p { "Find out first whether the effect landed. Then choose:" }
            (resolve_form(record, visitor, &TypedResponse::suggested()))
        } @else {
            p { "It is not held, and there is nothing to resolve: " (instead(record)) "." }
            (back(record))
        }
    }
}

/// What it means to release a held record.
pub(super) struct HeldRelease;

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
            strong { "Releasing stops no process." } " If " bdi { (running.grant.owner) } " still runs, it goes on beside the next claim until it notices; its \
            complete is refused as lost, and its outcome is not stored. Stop that process first if you can."
        }
    }
}

fn instead(record: &Record) -> &'static str {
    match &record.state {
        RecordState::Running(_) => "a run is in progress, which a release takes away",
        RecordState::Done(_) => "it has an outcome already, which never changes",
        RecordState::Released(_) => "the next claim runs it",
        RecordState::Held(_) => "reload this page",
    }
}

/// What was shown: a run by its fence, which stays the same while it renews its lease, lapses and is held; anything
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
            (reason_field("reason", "reason", "released by hand"))
            div.buttons {
                button.danger type="submit" data-test="confirm" { "Release it" }
                a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" }
            }
        }
    }
}

fn resolve_form(record: &Record, visitor: &Visitor, response: &TypedResponse) -> Markup {
    let action = format!("/keys/{}/resolve", record.key.id());
    let is_http = HttpRecord::of(record).is_some();
    html! {
        div.choices {
            form.choice-card method="post" action=(action) aria-labelledby="landed" {
                h3 #landed { "The effect landed" }
                p { "The key becomes done: every retry gets exactly this " (if is_http { "response" } else { "outcome" }) ". " strong { "That cannot be undone." } }
                (sealed(record, visitor))
                input type="hidden" name="how" value="done";
                @if is_http { (response_fields(response)) } @else { (outcome_fields()) }
                button.primary type="submit" data-test="confirm" { "Complete it" }
            }
            form.choice-card method="post" action=(action) aria-labelledby="not-landed" {
                h3 #not-landed { "The effect did not land" }
                (HeldRelease)
                (sealed(record, visitor))
                input type="hidden" name="how" value="release";
                (reason_field("why-released", "reason", "checked: it did not land"))
                button.danger type="submit" data-test="confirm-release" { "Release it" }
            }
        }
        p { a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" } }
    }
}

impl TypedResponse {
    /// What most services answer a creation with.
    pub(super) fn suggested() -> Self {
        Self { status: "201".to_owned(), content_type: "application/json".to_owned(), ..Self::default() }
    }
}

pub(super) fn response_fields(response: &TypedResponse) -> Markup {
    html! {
        div.field {
            label for="status" { "Status" }
            input #status name="status" value=(response.status) inputmode="numeric" maxlength="3" required;
        }
        div.field {
            label for="headers" { "Headers, one on each line" }
            textarea #headers name="headers" rows="3" spellcheck="false" placeholder="Location: /charges/7" { (response.headers) }
        }
        div.field {
            label for="content_type" { "Content type" }
            input #content_type name="content_type" value=(response.content_type) spellcheck="false";
        }
        div.field {
            label for="body" { "Body" }
            // Parsers drop the first line break in a text area: one more keeps one that was typed.
            textarea #body name="body" rows="6" spellcheck="false" placeholder="{\"id\": 7}" { "\n" (response.body) }
        }
    }
}

pub(super) fn outcome_fields() -> Markup {
    html! {
        div.field {
            label for="kind" { "Kind of the outcome" }
            select #kind name="kind" { option value="success" { "success" } option value="failure" { "failure" } }
        }
        div.field {
            label for="outcome" { "Outcome that retries get, exactly as written here" }
            textarea #outcome name="outcome" rows="5" spellcheck="false" placeholder="{\"id\": \"ch_1042\"}" {}
        }
    }
}

/// The field for the reason of an action. On a page with a filter, `reason` is a word of the filter.
pub(super) fn reason_field(id: &str, name: &str, filled_in: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { "Reason, for the audit log" }
            input id=(id) name=(name) value=(filled_in) required maxlength="512";
        }
    }
}

fn back(record: &Record) -> Markup {
    html! { p { a.button href={ "/keys/" (record.key.id()) } { "Back to the key" } } }
}
