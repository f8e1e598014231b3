//! The page that says what an action on many keys means, and asks. All of it is in its address, so that it can be shared.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use tokio::time::timeout;

use super::ask::{BulkAction, BulkAsk, HELD, LIMIT, WHY};
use super::preview::{COUNT_TIME, Preview};
use crate::access::Need;
use crate::dashboard::answer::{Refused, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::keys::detail::{STORE_TIMEOUT, no_answer};
use crate::dashboard::keys::settle::{
    HeldRelease, TypedResponse, outcome_fields, reason_field, response_fields,
};
use crate::dashboard::parts::empty;
use crate::dashboard::query::Pairs;
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::lookup::Selection;

/// The page that says what the action means, and asks.
pub(in crate::dashboard) async fn confirm_many(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    query: Result<Query<Pairs>, QueryRejection>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let pairs = query.map(|Query(query)| query).unwrap_or_default();
    let ask = BulkAsk::read(&pairs).map_err(|wrong| Refused::invalid(&visitor, &wrong))?;
    let content = question(&served, &visitor, &ask, &TypedResponse::suggested(), None).await?;
    Ok(shown(&visitor, &Frame { title: ask.action.title(), tab: Tab::Keys }, &content))
}

/// The question, with what was typed so far and what is wrong with it.
pub(super) async fn question(
    served: &AppState,
    visitor: &Visitor,
    ask: &BulkAsk,
    typed: &TypedResponse,
    wrong: Option<&str>,
) -> Result<Markup, Refused> {
    let selection = ask.selection(visitor).map_err(|wrong| Refused::invalid(visitor, &wrong))?;
    let preview = timeout(STORE_TIMEOUT, Preview::of(served, ask, &selection)).await;
    let preview = preview.unwrap_or_else(|_| Err(no_answer()));
    let preview = preview.map_err(|error| Refused::store(visitor, &error))?;
    Ok(html! {
        div.head { h1 { (ask.action.title()) } }
        @if let Some(wrong) = wrong { p.flash.wrong role="alert" data-test="flash" { "Nothing was changed: " (wrong) "." } }
        @if preview.matched == 0 { (nothing_to_do(ask, &selection)) } @else {
            section.card.confirm aria-labelledby="confirm-title" {
                h2 #confirm-title data-test="bulk-count" { (capitalised(&preview.count())) }
                p { (what_is_meant(ask, &selection, &preview)) }
                (preview.table())
            }
            section.card.confirm aria-labelledby="decide-title" { (decision(visitor, ask, &selection, &preview, typed)) }
        }
    })
}

fn what_is_meant(ask: &BulkAsk, selection: &Selection, preview: &Preview) -> Markup {
    html! {
        @match &ask.ids {
            None => { "All that match: " bdi { (selection) } "." }
            Some(ids) => {
                "The keys that you selected."
                @let gone = (ids.len() as u64).saturating_sub(preview.matched);
                @if gone > 0 { " " (counted(gone, "other key")) " of the selection " (if gone == 1 { "is" } else { "are" })
                    " left out: not in a state that this action is for." }
            }
        }
        @if preview.is_cut { " The store was read for " (COUNT_TIME.as_secs()) " s, which was not enough to count all of them." }
        @if preview.matched > LIMIT as u64 { " One form acts on " (grouped(LIMIT as u64)) " keys at most; the result says how to go on." }
        " Keys that enter this state after this page was shown are left alone."
    }
}

fn nothing_to_do(ask: &BulkAsk, selection: &Selection) -> Markup {
    html! {
        section.card.confirm {
            (empty("There is no key to act on.", "Another operator may have settled them meanwhile. Looked for:", &[&selection.to_string()]))
            p { a.button href=(ask.list()) { "Back to the list" } }
        }
    }
}

fn decision(
    visitor: &Visitor,
    ask: &BulkAsk,
    selection: &Selection,
    preview: &Preview,
    typed: &TypedResponse,
) -> Markup {
    html! {
        @match ask.action {
            BulkAction::Release => {
                h2 #decide-title { "Release all of them?" }
                (HeldRelease)
                @if selection.states.iter().any(|state| *state != HELD) {
                    p { strong { "Releasing stops no process." } " A run that still goes on is not stopped: its outcome is refused as lost, and the next claim \
                        runs beside it. Stop those processes first if you can." }
                }
                form method="post" action="/actions" {
                    (sealed(visitor, ask, preview))
                    (reason_field(WHY, WHY, "checked: none of them landed"))
                    (submit("danger", &format!("Release {}", preview.count()), &ask.list()))
                }
            }
            BulkAction::Resolve => {
                h2 #decide-title { "Resolve all of them?" }
                p { "Find out first whether the effect of every one of them landed. They all get the same answer, as written here. " strong { "That cannot be undone." } }
                @if preview.has(true) { (resolve_form(visitor, ask, preview, "response", &response_fields(typed))) }
                @if preview.has(false) { (resolve_form(visitor, ask, preview, "outcome", &outcome_fields())) }
            }
        }
    }
}

fn resolve_form(visitor: &Visitor, ask: &BulkAsk, preview: &Preview, with: &str, fields: &Markup) -> Markup {
    let whose = match (preview.has(true) && preview.has(false), with) {
        (false, _) => "All of them",
        (true, "response") => "Keys of HTTP requests",
        (true, _) => "All other keys",
    };
    html! {
        form.choice-card method="post" action="/actions" aria-labelledby={ "with-" (with) } {
            h3 id={ "with-" (with) } { (whose) " get this " (with) }
            @if preview.has(true) && preview.has(false) { p { "The keys that this is not for are refused and stay held." } }
            (sealed(visitor, ask, preview))
            input type="hidden" name="with" value=(with);
            (fields)
            (submit("primary", &format!("Resolve {}", preview.count()), &ask.list()))
        }
    }
}

fn submit(class: &str, label: &str, back: &str) -> Markup {
    html! {
        div.buttons {
            button class=(class) type="submit" data-test="confirm" { (label) }
            a.button.quiet href=(back) { "Cancel" }
        }
    }
}

fn sealed(visitor: &Visitor, ask: &BulkAsk, preview: &Preview) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(visitor.csrf());
        input type="hidden" name="shown_at" value=(preview.at.as_micros());
        (ask.hidden())
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
