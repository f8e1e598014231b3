//! Many records: filtered, a page at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use semel::clock::Timestamp;
use semel::record::{Record, StateWord};
use semel::store::{Filter, Store};
use semel::{Key, RecordId, Result as Semel};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::admit::admit;
use super::body::Answer;
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::{Code, Problem};
use super::query::{Page, Query, within};
use crate::access::{Authenticated, Need};
use crate::state::AppState;
use semel_ops::format::span;
use semel_ops::lookup::walk::{self, Walk};
use semel_ops::record_json::{Content, Id, RecordView};

/// How many records are in memory at once, with whatever is in their outcomes.
const RECORDS_AT_ONCE: usize = 64;
/// How long a page looks; then it shows what it has, and where to go on.
const LOOK: Duration = Duration::from_millis(500);

/// A page of records, in the order of their ids.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Records {
    /// Never with the bytes of their outcomes.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<RecordView>))]
    records: Vec<Box<RawValue>>,
    /// What to give as `after` for the next page; `null` after the last. A page may be short, or empty, and not the last:
    /// it looks for a bounded time.
    next: Option<Id>,
}

/// The state of a record.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum StateName {
    Running,
    Done,
    Released,
    Held,
}

/// Which records are wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct ListQuery {
    /// A part of the tenant's path; once for each, outermost first. Scopes below it are listed, too.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// What kind of work. With a name and all of the scope, it names one record, which is found at once.
    operation: Option<String>,
    /// Which one of its kind.
    name: Option<String>,
    /// In one of these states; any if there is none.
    #[cfg_attr(feature = "openapi", param(required = false, inline))]
    state: Vec<StateName>,
    /// First seen longer ago than this: `10m`, `2h`, `3d`.
    #[cfg_attr(feature = "openapi", param(example = "10m"))]
    older_than: Option<String>,
    /// How many at most; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    limit: Option<u32>,
    /// Behind this record: `next` of the page before.
    #[cfg_attr(feature = "openapi", param(value_type = Option<Id>))]
    after: Option<String>,
}

/// List records, a page at a time
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/records", tag = "look", operation_id = "records", params(ListQuery),
    responses((status = 200, description = "A page.", body = Records), Looked)))]
pub(super) async fn records(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    mut query: Query,
) -> Result<Answer, Problem> {
    admit(&asker, Need::List, 1)?;
    let scope = query.all("scope").into_iter().map(|part| part.trim().into()).collect();
    let mut filter = Filter {
        scope: within(&asker.0, scope)?,
        operation: query.one("operation")?.map(|text| text.trim().into()),
        name: query.one("name")?.map(|text| text.trim().into()),
        states: query.all("state").iter().map(|word| state(word)).collect::<Result<_, _>>()?,
        first_seen_before: None,
    };
    let older_than = query.read("older_than", span::parse)?;
    let page = query.page()?;
    query.end()?;
    let store = &**served.store;
    if let Some(span) = older_than {
        filter.first_seen_before = Some(earlier(walk::now(store).await?, span));
    }
    let mut listed = Vec::new();
    if let Some((record, now)) = the_one(store, &filter).await? {
        listed.push(written(&RecordView::of(&record, now, Content::Hidden))?);
        return Answer::of(&Records { records: listed, next: None });
    }
    let next = look(store, filter, &page, |record, now| {
        listed.push(written(&RecordView::of(record, now, Content::Hidden))?);
        Ok(ApiState::Yes)
    })
    .await?;
    Answer::of(&Records { records: listed, next: next.map(Id) })
}

/// The one record that the filter names, if it is there and matches.
async fn the_one(store: &dyn Store, filter: &Filter) -> Semel<Option<(Record, Timestamp)>> {
    let (Some(operation), Some(name)) = (&filter.operation, &filter.name) else { return Ok(None) };
    let Ok(key) = Key::scoped(&filter.scope, operation, name) else { return Ok(None) };
    let answer = store.load(vec![key.id()]).await?;
    let record = answer.value.into_iter().next().flatten();
    let found = record.filter(|record| record.is_live(answer.now) && filter.matches(record));
    Ok(found.map(|record| (record, answer.now)))
}

/// Whether a record counts against the page's limit.
#[derive(PartialEq)]
pub(super) enum ApiState {
    Yes,
    No,
}

/// Hands over what is found until the page is full, the store is at its end, or the time is up; says where to go on.
pub(super) async fn look(
    store: &dyn Store,
    filter: Filter,
    page: &Page,
    mut each: impl FnMut(&Record, Timestamp) -> Result<ApiState, Problem>,
) -> Result<Option<RecordId>, Problem> {
    let started_at = Instant::now();
    let mut walk = Walk::new(store, filter, page.after);
    let mut left = page.limit;
    loop {
        let Some(found) = walk.next_of(left.min(RECORDS_AT_ONCE)).await? else { return Ok(None) };
        for record in &found.records {
            left = left.saturating_sub(usize::from(each(record, found.now)? == ApiState::Yes));
        }
        if left == 0 || started_at.elapsed() >= LOOK {
            return Ok(walk.after());
        }
        // On a store in memory, a walk never waits: without this, nobody else's turn would come.
        tokio::task::yield_now().await;
    }
}

/// A part of an answer, written before what it is made of is dropped.
pub(super) fn written(view: &impl Serialize) -> Result<Box<RawValue>, Problem> {
    to_raw_value(view)
        .map_err(|error| Problem::new(Code::Corrupt, format!("the answer cannot be written: {error}")))
}

fn state(word: &str) -> Result<StateWord, Problem> {
    let found = StateWord::ALL.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| Problem::invalid("state: write running, done, released or held"))
}

fn earlier(now: Timestamp, span: Duration) -> Timestamp {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}
