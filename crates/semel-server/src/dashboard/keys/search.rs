//! A page of the keys that a filter finds. It looks for a bounded time and then offers to go on, so that it stays fast however many records
//! there are.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
use semel::{Key, RecordId, Result as SemelResult};
use tokio::time::{Instant, timeout};

use super::bulk;
use super::detail::{STORE_TIMEOUT, no_answer};
use super::filter::KeyFilter;
use crate::access::{Caller, Need};
use crate::dashboard::answer::{Refused, see_other, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::parts::{ago, empty, key_link, state};
use crate::dashboard::query::Pairs;
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::record;
use semel_ops::lookup::walk::Walk;
use semel_ops::lookup::{IdPrefix, Order, Selection};

/// How many records a page shows.
const ROWS: usize = 50;
/// How long a page looks; then it shows what it has.
const LOOK: Duration = Duration::from_millis(300);
/// How long a page looks that is not sorted by id: it must read all of the selection.
pub(in crate::dashboard) const SORT_TIME: Duration = Duration::from_secs(1);
/// Fewer digits than these are a name.
const ID_DIGITS_MIN: usize = 8;

/// What a page shows.
struct Rows {
    records: Vec<Arc<Record>>,
    now: Timestamp,
    rest: Rest,
}

/// What a page does not show.
enum Rest {
    /// In the order of ids: where to go on; `None` at the end.
    Behind(Option<RecordId>),
    /// In another order: how many matched, and whether there was no time to read all of the store.
    Sorted { matched: u64, is_cut: bool },
}

pub(in crate::dashboard) async fn search(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    query: Result<Query<Pairs>, QueryRejection>,
) -> Result<Response, Refused> {
    visitor.need(Need::List)?;
    let filter = KeyFilter::read(&query.map(|Query(query)| query).unwrap_or_default());
    let frame = Frame { title: "Keys", tab: Tab::Keys };
    let asked = match Asked::of(&filter, &visitor.caller) {
        Ok(asked) => asked,
        Err(wrong) => {
            let content = html! { (head(&filter)) p.flash.wrong role="alert" data-test="flash" { (wrong) } };
            return Ok(shown(&visitor, &frame, &content));
        }
    };
    let looked = async {
        if let Some(id) = the_one(&served, &visitor.caller, &filter, &asked.selection).await? {
            return Ok(Looked::One(id));
        }
        look(&**served.store, asked).await.map(Looked::Many)
    };
    let looked = timeout(STORE_TIMEOUT, looked).await.unwrap_or_else(|_| Err(no_answer()));
    match looked.map_err(|error| Refused::store(&visitor, &error))? {
        Looked::One(id) => Ok(see_other(&format!("/keys/{id}"))),
        Looked::Many(rows) => {
            let content = html! { (head(&filter)) (table(&filter, &rows, &visitor)) };
            Ok(shown(&visitor, &frame, &content))
        }
    }
}

/// What a filter means.
struct Asked {
    selection: Selection,
    order: Order,
    after: Option<RecordId>,
}

impl Asked {
    fn of(filter: &KeyFilter, caller: &Caller) -> Result<Self, String> {
        Ok(Self { selection: filter.selection(caller)?, order: filter.order()?, after: filter.after()? })
    }
}

enum Looked {
    One(RecordId),
    Many(Rows),
}

/// The one record that is meant: its key is given whole, or its id.
async fn the_one(
    served: &AppState,
    caller: &Caller,
    filter: &KeyFilter,
    selection: &Selection,
) -> SemelResult<Option<RecordId>> {
    let Some(name) = selection.name.as_deref().filter(|_| filter.is_a_key_alone()) else { return Ok(None) };
    if let Some(operation) = &selection.operation {
        let Ok(key) = Key::scoped(&selection.scope, operation, name) else { return Ok(None) };
        return Ok(served.semel.get(&key).await?.map(|found| found.key.id()));
    }
    if !filter.text("scope").is_empty() || name.len() < ID_DIGITS_MIN {
        return Ok(None);
    }
    let Ok(prefix) = name.parse::<IdPrefix>() else { return Ok(None) };
    let mut walk = Walk::new(&**served.store, Filter::default(), prefix.before_first());
    let Some(page) = walk.next_of(1).await? else { return Ok(None) };
    let found = page.records.first().filter(|found| caller.reaches(&found.key)).map(|found| found.key.id());
    Ok(found.filter(|id| *id <= prefix.last()))
}

async fn look(store: &dyn Store, asked: Asked) -> SemelResult<Rows> {
    match asked.order {
        Order::Id => look_by_id(store, asked).await,
        order @ (Order::Age | Order::Changed) => look_sorted(store, &asked.selection, order).await,
    }
}

/// Looks until the page is full, the store is at its end, or the time is up.
async fn look_by_id(store: &dyn Store, asked: Asked) -> SemelResult<Rows> {
    let started_at = Instant::now();
    let mut walk = asked.selection.walk(store, asked.after).await?;
    let (mut records, mut now) = (Vec::new(), Timestamp::default());
    while records.len() < ROWS && (now == Timestamp::default() || started_at.elapsed() < LOOK) {
        let Some(page) = walk.next_of(ROWS.saturating_sub(records.len())).await? else { break };
        now = page.now;
        records.extend(page.records);
        tokio::task::yield_now().await;
    }
    Ok(Rows { records, now, rest: Rest::Behind(walk.after()) })
}

async fn look_sorted(store: &dyn Store, selection: &Selection, order: Order) -> SemelResult<Rows> {
    let sorted = selection.sorted(store, order, ROWS, SORT_TIME).await?;
    let found = selection.load(store, &sorted.ids).await?;
    let now = found.first().map(|(_, now)| *now).unwrap_or_default();
    let rest = Rest::Sorted { matched: sorted.matched, is_cut: sorted.is_cut };
    Ok(Rows { records: found.into_iter().map(|(record, _)| record).collect(), now, rest })
}

fn head(filter: &KeyFilter) -> Markup {
    html! { div.head { h1 { "Keys" } } (filter.form()) }
}

fn table(filter: &KeyFilter, rows: &Rows, visitor: &Visitor) -> Markup {
    let is_at_end = !matches!(rows.rest, Rest::Behind(Some(_)));
    let may_act = visitor.caller.may(Need::Act);
    html! {
        @if rows.records.is_empty() && is_at_end { (no_match(filter)) } @else if !rows.records.is_empty() {
            (bulk::selectable(filter, visitor, &html! {
                div.table-box tabindex="0" role="region" aria-label="Keys that were found" {
                    table.cards {
                        thead {
                            tr {
                                @if may_act { (bulk::select_all()) }
                                th scope="col" { "Key" }
                                th scope="col" { "State" }
                                th scope="col" { "Owner or reason" }
                                th.number scope="col" { "Attempt" }
                                th.number scope="col" { "First seen" }
                                th.number scope="col" { "Left" }
                                th scope="col" { "Id" }
                            }
                        }
                        tbody { @for found in &rows.records { (row(found, rows.now, may_act)) } }
                    }
                }
            }))
        }
        (foot(filter, rows))
    }
}

fn no_match(filter: &KeyFilter) -> Markup {
    if filter.is_empty() {
        return empty(
            "There is no key yet.",
            "A key appears here with its first claim: by `semel run`, by the API, or by a request with an \
             Idempotency-Key through `semel proxy`. To see some:",
            &["semel demo --keep"],
        );
    }
    empty(
        "No key matches.",
        "Scope, operation and name must match exactly, including upper and lower case; \"Name begins with\" and \"Label \
         begins with\" need only the beginning. Clear the filters to list all keys.",
        &[],
    )
}

fn row(found: &Record, now: Timestamp, may_act: bool) -> Markup {
    html! {
        tr data-test="key-row" {
            @if may_act { (bulk::select(found)) }
            th scope="row" { (key_link(found)) }
            td data-label="State" { (state(found, now)) }
            td.why data-label="Owner or reason" { bdi { (record::who_or_why(found)) } }
            td.number data-label="Attempt" { (found.attempt) }
            td.number data-label="First seen" { (ago(found.first_seen_at, now)) }
            td.number data-label="Left" { (record::left(found, now)) }
            td data-label="Id" { code { (found.key.id().short()) } }
        }
    }
}

/// What was found, how much was looked at, and how to go on.
fn foot(filter: &KeyFilter, rows: &Rows) -> Markup {
    let found = counted(rows.records.len() as u64, "key");
    html! {
        div.foot {
            @match &rows.rest {
                Rest::Sorted { matched, is_cut } => { (sorted_foot(*matched, *is_cut, rows.records.len())) }
                Rest::Behind(None) if rows.records.is_empty() => {}
                Rest::Behind(None) => p { (found) " on this page; there are no more." }
                Rest::Behind(Some(next)) => {
                    p {
                        (found) " on this page; searched " (looked_through(*next)) " % of the store. Sorted by id."
                    }
                    a.button href=(filter.behind(*next)) rel="next" { @if rows.records.len() < ROWS { "Continue the search" } @else { "Next page" } }
                }
            }
            @if !filter.text("after").is_empty() { a.button.quiet href=(filter.address("/keys", &[])) { "First page" } }
        }
    }
}

/// Stores have no index by age or by change: a list that is sorted so has one page, and all of the selection was read for it.
pub(in crate::dashboard) fn sorted_foot(matched: u64, is_cut: bool, shown: usize) -> Markup {
    html! {
        @if is_cut {
            p data-test="cut" {
                strong { "This order is not complete. " }
                "The store has no index for it, and there was no time to read all records: the first " (shown) " of "
                (grouped(matched)) " keys that were read and match. Narrow the filter, or sort by id to page through all keys."
            }
        } @else if matched > shown as u64 {
            p { "The first " (shown) " of " (counted(matched, "key")) ". Sort by id to page through all of them." }
        } @else if matched > 0 {
            p { (counted(matched, "key")) "; there are no more." }
        }
    }
}

/// How much of a store is before this id: ids are digests, and spread evenly.
fn looked_through(id: RecordId) -> u32 {
    let [first, second, ..] = *id.as_bytes();
    u32::from(u16::from_be_bytes([first, second])).saturating_mul(100) / 65_536
}
