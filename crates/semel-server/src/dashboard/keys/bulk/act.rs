//! Does what was confirmed to every key, and says what became of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use semel::clock::Timestamp;
use serde::Deserialize;

use super::ask::{BulkAction, BulkAsk, LIMIT, WHY, value};
use super::question::question;
use crate::access::Need;
use crate::dashboard::answer::{Refused, shown, with_status};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::keys::settle::{TypedResponse, reason, typed_outcome};
use crate::dashboard::query::Pairs;
use crate::dashboard::session::{Posted, Signed};
use crate::operator_actions::{OperatorAction, ShownRecords, act_on_shown};
use crate::state::AppState;
use semel_ops::format::number::grouped;
use semel_ops::operator::{Many, Settlement};

/// The form of the page that asks: names may come more than once.
#[derive(Deserialize)]
#[serde(transparent)]
pub(in crate::dashboard) struct BulkForm(Pairs);

impl Signed for BulkForm {
    fn csrf(&self) -> &str {
        value(&self.0, "csrf")
    }
}

/// Does it, and says what became of it.
pub(in crate::dashboard) async fn act_on_many(
    State(served): State<Arc<AppState>>,
    Posted { visitor, form: BulkForm(pairs) }: Posted<BulkForm>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let invalid = |wrong: &str| Refused::invalid(&visitor, wrong);
    let ask = BulkAsk::read(&pairs).map_err(|wrong| invalid(&wrong))?;
    let at = value(&pairs, "shown_at").parse().map(Timestamp::from_micros);
    let at = at.map_err(|_| invalid("The form does not say when it was shown."))?;
    let frame = Frame { title: ask.action.title(), tab: Tab::Keys };
    let action = match (ask.action, value(&pairs, "with")) {
        (BulkAction::Release, _) => {
            OperatorAction::Release { reason: reason(&visitor, value(&pairs, WHY))?.into() }
        }
        (BulkAction::Resolve, "outcome") => OperatorAction::Resolve(Settlement::Outcome(typed_outcome(
            value(&pairs, "kind"),
            value(&pairs, "outcome"),
        ))),
        (BulkAction::Resolve, _) => {
            let typed = typed_response(&pairs);
            match typed.supplied() {
                Ok(response) => OperatorAction::Resolve(Settlement::Response(response)),
                Err(wrong) => {
                    let content = question(&served, &visitor, &ask, &typed, Some(&wrong)).await?;
                    return Ok(with_status(StatusCode::BAD_REQUEST, &visitor, &frame, &content));
                }
            }
        }
    };
    let selection = ask.selection(&visitor).map_err(|wrong| invalid(&wrong))?;
    let records = ShownRecords { selection, ids: ask.ids.clone(), at };
    let many = act_on_shown(&served, &visitor.caller, records, action, LIMIT).await;
    let many = many.map_err(|error| Refused::store(&visitor, &error))?;
    Ok(shown(&visitor, &frame, &result(&ask, &many)))
}

fn typed_response(pairs: &Pairs) -> TypedResponse {
    let typed = |word| value(pairs, word).to_owned();
    TypedResponse {
        status: typed("status"),
        headers: typed("headers"),
        content_type: typed("content_type"),
        body: typed("body"),
    }
}

fn result(ask: &BulkAsk, many: &Many) -> Markup {
    let (class, done) = match (many.is_whole(), ask.action) {
        (true, BulkAction::Release) => ("flash fine", "Released: the next claim of each runs it."),
        (true, BulkAction::Resolve) => ("flash fine", "Resolved: every retry gets what you wrote."),
        (false, _) => {
            ("flash warning", "Not every key was settled. The numbers below say what became of each.")
        }
    };
    let rows = [
        ("Resolved", many.resolved),
        ("Released", many.released),
        ("Left alone: changed since the page was shown", many.changed),
        ("Left alone: nothing to settle", many.not_held),
        ("Refused: nothing was changed", many.failed),
        ("Not known: the store did not answer; check these keys", many.unknown),
    ];
    html! {
        div.head { h1 { (ask.action.title()) } }
        p class=(class) role="status" data-test="flash" { (done) }
        section.card aria-labelledby="result-title" {
            h2 #result-title { "Result" }
            dl.facts.numbers {
                div { dt { "Keys acted on" } dd data-test="matched" { (grouped(many.matched)) } }
                @for (what, count) in rows.into_iter().filter(|(_, count)| *count > 0) {
                    div { dt { (what) } dd { (grouped(count)) } }
                }
            }
            @if let Some(error) = &many.first_error { p { "The first error:" } pre.said { (error) } }
            @if many.next.is_some() {
                p { "The limit of " (grouped(LIMIT as u64)) " keys was reached. "
                    a href=(ask.filter.address("/actions", &[("action", ask.action.as_str()), ("match", "all")])) { "Go on with the rest" } }
            }
            p { "Each key has its own lines in the audit log." }
            div.buttons { a.button.primary href=(ask.list()) { "Back to the list" } a.button href="/attention" { "Needs a person" } }
        }
    }
}
