//! What was searched for, and a page of what was found. It looks for a bounded time and then offers to go on, so that it stays fast however many records
//! there are.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, StateKind};
use semel::store::{Filter, Store};
use semel::{Key, RecordId, Result as SemelResult};
use tokio::time::{Instant, timeout};

use super::detail::{STORE_TIMEOUT, no_answer};
use crate::access::{Caller, Need};
use crate::dashboard::answer::{Refused, see_other, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::parts::{ago, key_link, labelled, nothing, state};
use crate::dashboard::query::{Pairs, address};
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::number::counted;
use semel_ops::format::{record, scope, span};
use semel_ops::lookup::IdPrefix;
use semel_ops::lookup::walk::{self, Walk};

/// How many records a page shows.
const ROWS: usize = 50;
/// How long a page looks; then it shows what it has.
const LOOK: Duration = Duration::from_millis(300);
/// Fewer digits than these are a name.
const ID_DIGITS_MIN: usize = 8;

/// What a page shows.
struct Rows {
    records: Vec<Arc<Record>>,
    now: Timestamp,
    /// Where to go on; `None` at the end.
    next: Option<RecordId>,
}

pub(in crate::dashboard) async fn search(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    query: Result<Query<Pairs>, QueryRejection>,
) -> Result<Response, Refused> {
    visitor.need(Need::List)?;
    let wanted = Wanted::read(query.map(|Query(query)| query).unwrap_or_default());
    let frame = Frame { title: "Keys", tab: Tab::Keys };
    let meant = match wanted.meant(&visitor.caller) {
        Ok(meant) => meant,
        Err(wrong) => {
            let content = html! { (head(&wanted)) p.flash.wrong role="alert" data-test="flash" { (wrong) } };
            return Ok(shown(&visitor, &frame, &content));
        }
    };
    let looked = async {
        if let Some(id) = the_one(&served, &visitor.caller, &wanted, &meant.filter).await? {
            return Ok(Looked::One(id));
        }
        look(&**served.store, meant).await.map(Looked::Many)
    };
    let looked = timeout(STORE_TIMEOUT, looked).await.unwrap_or_else(|_| Err(no_answer()));
    match looked.map_err(|error| Refused::store(&visitor, &error))? {
        Looked::One(id) => Ok(see_other(&format!("/keys/{id}"))),
        Looked::Many(rows) => {
            let content = html! { (head(&wanted)) (table(&wanted, &rows)) };
            Ok(shown(&visitor, &frame, &content))
        }
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
    wanted: &Wanted,
    filter: &Filter,
) -> SemelResult<Option<RecordId>> {
    if !wanted.is_a_key_alone() || wanted.name.is_empty() {
        return Ok(None);
    }
    if let Some(operation) = &filter.operation {
        let Ok(key) = Key::scoped(&filter.scope, operation, &wanted.name) else { return Ok(None) };
        return Ok(served.semel.get(&key).await?.map(|found| found.key.id()));
    }
    if !wanted.scope.is_empty() || wanted.name.len() < ID_DIGITS_MIN {
        return Ok(None);
    }
    let Ok(prefix) = wanted.name.parse::<IdPrefix>() else { return Ok(None) };
    let mut walk = Walk::new(&**served.store, Filter::default(), prefix.before_first());
    let Some(page) = walk.next_of(1).await? else { return Ok(None) };
    let found = page.records.first().filter(|found| caller.reaches(&found.key)).map(|found| found.key.id());
    Ok(found.filter(|id| *id <= prefix.last()))
}

/// Looks until the page is full, the store is at its end, or the time is up.
async fn look(store: &dyn Store, meant: Meant) -> SemelResult<Rows> {
    let started_at = Instant::now();
    let mut filter = meant.filter;
    if let Some(span) = meant.older_than {
        filter.first_seen_before = Some(walk::before(store, span).await?);
    }
    let mut walk = Walk::new(store, filter, meant.after);
    let mut rows = Rows { records: Vec::new(), now: Timestamp::default(), next: None };
    while rows.records.len() < ROWS && (rows.now == Timestamp::default() || started_at.elapsed() < LOOK) {
        let Some(page) = walk.next_of(ROWS.saturating_sub(rows.records.len())).await? else { break };
        rows.now = page.now;
        rows.records.extend(page.records);
        tokio::task::yield_now().await;
    }
    rows.next = walk.after();
    Ok(rows)
}

fn head(wanted: &Wanted) -> Markup {
    html! {
        div.head { h1 { "Keys" } }
        form.search method="get" action="/keys" role="search" aria-label="Keys" {
            div.fields {
                (field("scope", "Scope", &wanted.scope, "acme/eu, and below"))
                (field("operation", "Operation", &wanted.operation, "charge"))
                (field("name", "Name or id", &wanted.name, "order-1042"))
                (field("older_than", "Older than", &wanted.older_than, "10m, 2h, 3d"))
            }
            div.row {
                fieldset {
                    legend.sr { "State" }
                    @for word in StateKind::ALL {
                        label.choice {
                            input type="checkbox" name="state" value=(word.as_str()) checked[wanted.states.contains(&word)];
                            (labelled(word.as_str(), word.as_str()))
                        }
                    }
                }
                div.buttons {
                    a.button.quiet href="/keys" { "Clear" }
                    button.primary type="submit" { "Search" }
                }
            }
        }
    }
}

fn field(name: &str, label: &str, value: &str, example: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(value) placeholder=(example) autocomplete="off" spellcheck="false";
        }
    }
}

fn table(wanted: &Wanted, rows: &Rows) -> Markup {
    html! {
        @if rows.records.is_empty() && rows.next.is_none() {
            (nothing("No key is like that. Scope, operation and name are looked for as they are written, in upper and lower case."))
        } @else if !rows.records.is_empty() {
            div.table-box tabindex="0" role="region" aria-label="Keys that were found" {
                table.cards {
                    thead {
                        tr {
                            th scope="col" { "Key" }
                            th scope="col" { "State" }
                            th scope="col" { "Who or why" }
                            th.number scope="col" { "Attempt" }
                            th.number scope="col" { "First seen" }
                            th.number scope="col" { "Left" }
                            th scope="col" { "Id" }
                        }
                    }
                    tbody { @for found in &rows.records { (row(found, rows.now)) } }
                }
            }
        }
        (foot(wanted, rows))
    }
}

fn row(found: &Record, now: Timestamp) -> Markup {
    html! {
        tr data-test="key-row" {
            th scope="row" { (key_link(&found.key)) }
            td data-label="State" { (state(found, now)) }
            td.why data-label="Who or why" { bdi { (record::who_or_why(found)) } }
            td.number data-label="Attempt" { (found.attempt) }
            td.number data-label="First seen" { (ago(found.first_seen_at, now)) }
            td.number data-label="Left" { (record::left(found, now)) }
            td data-label="Id" { code { (found.key.id().short()) } }
        }
    }
}

/// What was found, how much was looked at, and how to go on.
fn foot(wanted: &Wanted, rows: &Rows) -> Markup {
    let found = counted(rows.records.len() as u64, "key");
    html! {
        div.foot {
            @match rows.next {
                None if rows.records.is_empty() => {}
                None => p { (found) " on this page, and no more." }
                Some(next) => {
                    p {
                        (found) " on this page; looked through " (looked_through(next)) " % of the store. Keys come in the order of their ids, \
                        which means nothing."
                    }
                    a.button href=(wanted.after(Some(next))) rel="next" { @if rows.records.len() < ROWS { "Go on looking" } @else { "Next page" } }
                }
            }
            @if !wanted.after.is_empty() { a.button.quiet href=(wanted.after(None)) { "Back to the first page" } }
        }
    }
}

/// How much of a store is before this id: ids are digests, and spread evenly.
fn looked_through(id: RecordId) -> u32 {
    let [first, second, ..] = *id.as_bytes();
    u32::from(u16::from_be_bytes([first, second])).saturating_mul(100) / 65_536
}

/// What was searched for, as it was typed.
#[derive(Clone, Debug, Default)]
struct Wanted {
    scope: String,
    operation: String,
    name: String,
    states: Vec<StateKind>,
    older_than: String,
    after: String,
}

/// What it means.
struct Meant {
    filter: Filter,
    older_than: Option<Duration>,
    after: Option<RecordId>,
}

impl Wanted {
    fn read(query: Vec<(String, String)>) -> Self {
        let mut wanted = Self::default();
        for (name, value) in query {
            let value = value.trim().to_owned();
            match name.as_str() {
                "scope" => wanted.scope = value,
                "operation" => wanted.operation = value,
                "name" => wanted.name = value,
                "older_than" => wanted.older_than = value,
                "after" => wanted.after = value,
                "state" => {
                    wanted.states.extend(StateKind::ALL.into_iter().find(|word| word.as_str() == value));
                }
                // Links from elsewhere may carry more.
                _ => {}
            }
        }
        wanted.states.dedup();
        wanted
    }

    /// What it means for this caller, or what is wrong with it.
    fn meant(&self, caller: &Caller) -> Result<Meant, String> {
        let typed = if self.scope.is_empty() { Vec::new() } else { scope::parse(&self.scope)? };
        let typed: Vec<Box<str>> = typed.iter().map(|part| part.trim().into()).collect();
        let older_than = match self.older_than.as_str() {
            "" => None,
            text => Some(span::parse(text)?),
        };
        let after = match self.after.as_str() {
            "" => None,
            text => Some(text.parse::<IdPrefix>()?.last()),
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.into());
        let filter = Filter {
            scope: within(caller.scope(), typed)?,
            operation: given(&self.operation),
            name: given(&self.name),
            states: self.states.clone(),
            first_seen_before: None,
        };
        Ok(Meant { filter, older_than, after })
    }

    /// Whether nothing but a key was asked for, so that finding it is all that is left to do.
    fn is_a_key_alone(&self) -> bool {
        self.states.is_empty() && self.older_than.is_empty() && self.after.is_empty()
    }

    /// The address of the page behind this record.
    fn after(&self, after: Option<RecordId>) -> String {
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let fixed = [
            ("scope", self.scope.as_str()),
            ("operation", &self.operation),
            ("name", &self.name),
            ("older_than", &self.older_than),
        ];
        let states = self.states.iter().map(|word| ("state", word.as_str()));
        address("/keys", fixed.into_iter().chain(states).chain([("after", after.as_str())]))
    }
}

/// The scope that was typed, if the caller reaches it; the caller's own if none was.
fn within(own: &[Box<str>], typed: Vec<Box<str>>) -> Result<Vec<Box<str>>, String> {
    if typed.len() >= own.len() && typed.starts_with(own) {
        return Ok(typed);
    }
    if own.starts_with(&typed) {
        return Ok(own.to_vec());
    }
    Err(format!("your token reaches {} only", scope::shown(own.iter().map(|part| &**part))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[&str]) -> Vec<Box<str>> {
        text.iter().map(|part| (*part).into()).collect()
    }

    #[test]
    fn nobody_searches_outside_their_scope() {
        let own = parts(&["acme", "eu"]);
        assert_eq!(within(&own, parts(&[])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme"])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme", "eu", "billing"])), Ok(parts(&["acme", "eu", "billing"])));
        for foreign in [parts(&["zeta"]), parts(&["acme", "us"]), parts(&["acme", "eux", "a"])] {
            assert!(within(&own, foreign).is_err());
        }
        assert_eq!(within(&[], parts(&["zeta"])), Ok(parts(&["zeta"])));
    }
}
