//! Everything that is held: what needs a person, oldest first.
//!
//! Without a filter it is what the last count found, which costs nothing and is live. With one, the store is read.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, StateKind};
use semel::{Error, Result as SemelResult};
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::record;
use semel_ops::lookup::{Order, SelectedState, Selection, walk};

use super::answer::{Refused, shown};
use super::frame::{Frame, Tab};
use super::keys::{KeyFilter, SORT_TIME, select, select_all, selectable, sorted_foot};
use super::overview::first_count;
use super::parts::{age, ago, empty, key_link, nothing};
use super::query::Pairs;
use super::session::Visitor;
use crate::access::Need;
use crate::state::AppState;

/// How many keys the page shows.
const ROWS: usize = 50;

pub(super) async fn show(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    query: Result<Query<Pairs>, QueryRejection>,
) -> Result<Response, Refused> {
    visitor.need(Need::List)?;
    let filter = KeyFilter::read(&query.map(|Query(query)| query).unwrap_or_default());
    let refused = |error: Error| Refused::store(&visitor, &error);
    let list = match filter.selection(&visitor.caller) {
        Err(wrong) => html! { p.flash.wrong role="alert" data-test="flash" { (wrong) } },
        Ok(_) if filter.is_empty() => all(&served, &visitor, &filter).await,
        Ok(selection) => matching(&served, &visitor, &filter, selection).await.map_err(refused)?,
    };
    let content = html! {
        div.head { h1 { "Needs a person" } p.live-status #live-status hidden {} }
        p { "These keys do not run again until an operator decides. Find out whether the effect landed. If it did, resolve \
             the key with the response that its client gets. If it did not, release the key, and the next retry runs." }
        (filter.held_form())
        div.stack #attention data-live { (list) }
    };
    Ok(shown(&visitor, &Frame { title: "Needs a person", tab: Tab::Attention }, &content))
}

/// What the last count found.
async fn all(served: &AppState, visitor: &Visitor, filter: &KeyFilter) -> Markup {
    let found = first_count(served, visitor).await;
    let Some(at) = found.as_of else { return nothing("The first count of the store is still running.") };
    // A store that does not answer leaves the last count, as of when it was made.
    let now = walk::now(&**served.store).await.unwrap_or(at);
    let shown = found.oldest_held.len() as u64;
    html! {
        p.as-of { (counted(found.held, "key")) " held, counted " (ago(at, now)) ". Sorted by how long they have been held." }
        @if shown == 0 { (nothing_held()) } @else { (list(&found.oldest_held, now, visitor, filter)) }
        @if found.held > shown {
            p.more { "The oldest " (grouped(shown)) " of " (grouped(found.held)) ". " a href="/keys?state=held" { "All held keys" } }
        }
    }
}

/// What a filter finds in the store.
async fn matching(
    served: &AppState,
    visitor: &Visitor,
    filter: &KeyFilter,
    mut selection: Selection,
) -> SemelResult<Markup> {
    selection.states = vec![SelectedState::Is(StateKind::Held)];
    let store = &**served.store;
    let sorted = selection.sorted(store, Order::Age, ROWS, SORT_TIME).await?;
    let found = selection.load(store, &sorted.ids).await?;
    let now = found.first().map(|(_, now)| *now).unwrap_or_default();
    Ok(html! {
        p.as-of { (counted(sorted.matched, "held key")) " match: " bdi { (selection) } ". Sorted by when they were first seen, oldest first." }
        @if found.is_empty() { (nothing("No held key matches this filter.")) } @else {
            (list(found.iter().map(|(record, _)| &**record), now, visitor, filter))
        }
        div.foot { (sorted_foot(sorted.matched, sorted.is_cut, found.len())) }
    })
}

fn list<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    now: Timestamp,
    visitor: &Visitor,
    filter: &KeyFilter,
) -> Markup {
    let may_act = visitor.caller.may(Need::Act);
    selectable(
        filter,
        visitor,
        &html! {
            div.table-box tabindex="0" role="region" aria-label="Held keys" {
                table.cards {
                    thead { tr {
                        @if may_act { (select_all()) }
                        th scope="col" { "Key" } th scope="col" { "Reason" } th.number scope="col" { "Held for" }
                        th scope="col" { "Action" }
                    } }
                    tbody { @for record in records { (row(record, now, may_act)) } }
                }
            }
        },
    )
}

fn row(held: &Record, now: Timestamp, may_act: bool) -> Markup {
    let id = held.key.id();
    html! {
        tr data-test="key-row" {
            @if may_act { (select(held)) }
            th scope="row" { (key_link(held)) }
            td data-label="Reason" { bdi { (record::who_or_why(held)) } }
            td.number data-label="Held for" { (age(record::since(held), now)) }
            td data-label="Action" {
                @if may_act {
                    div.buttons {
                        a.button.primary href={ "/keys/" (id) "/resolve" } { "Resolve…" }
                        a.button href={ "/keys/" (id) "/release" } { "Release…" }
                    }
                } @else { "needs the role operate" }
            }
        }
    }
}

/// What is shown while no key is held.
pub(super) fn nothing_held() -> Markup {
    empty(
        "No key is held.",
        "A key is held when a run ended without a known result, for example because the upstream of `semel proxy` hung up \
         after it had the request. It then waits here for a decision. To see one:",
        &["semel demo --keep"],
    )
}
