//! Records: one by its key or by its id, and many, filtered, a page at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use semel::clock::Timestamp;
use semel::record::{Record, State as RecordState, StateKind};
use semel::store::{Filter, Store};
use semel::{Key, RecordId};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::ask::{Answer, Look, Page, Query, admit, id, within};
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::{Code, Problem};
use super::wire::OutcomeAs;
use crate::access::{Authenticated, Caller, Need};
use crate::serve::note_key;
use crate::state::AppState;
use semel_ops::format::span;
use semel_ops::lookup::walk::{self, Walk};
use semel_ops::record_json::{Content, Id, RecordView};

/// How many records are in memory at once, with whatever is in their outcomes.
const RECORDS_AT_ONCE: usize = 64;
/// How long a page looks; then it shows what it has, and where to go on.
const LOOK: Duration = Duration::from_millis(500);

/// One record.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct RecordAnswer<'a> {
    record: RecordView<'a>,
}

/// The key of a record.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct RecordQuery {
    /// A part of the tenant's path; once for each, outermost first.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", param(example = "charge"))]
    operation: String,
    /// Which one of its kind.
    #[cfg_attr(feature = "openapi", param(example = "order-1042"))]
    name: String,
}

/// How to show a record.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct ShowQuery {
    /// How long to wait for a running record: answers as soon as it is settled or its lease has lapsed. `30s`, `500ms`; at most 60s.
    wait: Option<String>,
    /// How the bytes of an outcome are shown: as JSON where they are JSON text, unless this says `base64`.
    outcome_as: Option<OutcomeAs>,
}

/// See the record of a key, or wait until it is settled
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/record", tag = "look", operation_id = "record", params(RecordQuery, ShowQuery),
    responses((status = 200, description = "The record.", body = RecordAnswer), Looked)))]
pub(super) async fn by_key(asked: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = asked;
    admit(&asker, Need::See, 1)?;
    let (scope, operation, name) = (query.all("scope"), query.needed("operation")?, query.needed("name")?);
    let (wait, content) = (query.wait()?, query.content(&asker.0)?);
    query.end()?;
    let key = Key::scoped(&scope, &operation, &name)?;
    if !asker.0.reaches(&key) {
        return Err(Problem::forbidden("the key is outside this token's scope"));
    }
    shown(&served, &asker.0, key.id(), wait, content).await
}

/// See a record, or wait until it is settled
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/records/{id}", tag = "look", operation_id = "record_by_id",
    params(("id" = String, Path, description = "What identifies the record: 64 hex digits."), ShowQuery),
    responses((status = 200, description = "The record.", body = RecordAnswer), Looked)))]
pub(super) async fn by_id(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    Path(digits): Path<String>,
    mut query: Query,
) -> Result<Answer, Problem> {
    admit(&asker, Need::See, 1)?;
    let (wait, content) = (query.wait()?, query.content(&asker.0)?);
    query.end()?;
    let id = id(&digits).map_err(Problem::invalid)?;
    shown(&served, &asker.0, id, wait, content).await
}

async fn shown(
    served: &AppState,
    caller: &Caller,
    id: RecordId,
    wait: Duration,
    content: Content,
) -> Result<Answer, Problem> {
    let (mut record, mut now) = found(served, caller, id).await?;
    if !wait.is_zero() && runs(&record, now) {
        let started_at = Instant::now();
        record = settled(served, id, wait)
            .await?
            .filter(|record| caller.reaches(&record.key))
            .map(Arc::new)
            .ok_or_else(nothing)?;
        now = now.plus(started_at.elapsed()).max(record.changed_at);
    }
    Answer::of(&RecordAnswer { record: RecordView::of(&record, now, content) })
}

/// The record with this id, if there is one that this caller may know of, and the store's now.
pub(super) async fn found(
    served: &AppState,
    caller: &Caller,
    id: RecordId,
) -> Result<(Arc<Record>, Timestamp), Problem> {
    note_key(id);
    let found = walk::live(&**served.store, id).await?;
    found.filter(|(record, _)| caller.reaches(&record.key)).ok_or_else(nothing)
}

/// Waits for the end of a run. With too many waiting, or while the server stops, the record is shown as it is.
async fn settled(served: &AppState, id: RecordId, wait: Duration) -> Result<Option<Record>, Problem> {
    let semel = &served.semel;
    let Some(mut waiting) = served.waits.enter() else {
        return Ok(semel.get_settled(id, Duration::ZERO).await?);
    };
    tokio::select! {
        biased;
        settled = semel.get_settled(id, wait) => Ok(settled?),
        () = waiting.cut_short() => Ok(semel.get_settled(id, Duration::ZERO).await?),
    }
}

fn runs(record: &Record, now: Timestamp) -> bool {
    matches!(&record.state, RecordState::Running(running) if running.lease_is_good(now))
}

fn nothing() -> Problem {
    Problem::not_found("there is no such record: nobody has claimed it, or its retention is over")
}

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
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
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
pub(super) async fn records(asked: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = asked;
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
        filter.first_seen_before = Some(walk::before(store, span).await?);
    }
    let mut listed = Vec::new();
    if let Some((record, now)) = the_one(store, &filter).await? {
        listed.push(written(&RecordView::of(&record, now, Content::Hidden))?);
        return Answer::of(&Records { records: listed, next: None });
    }
    let next = look(store, filter, &page, |record, now| {
        listed.push(written(&RecordView::of(record, now, Content::Hidden))?);
        Ok(Counts::Yes)
    })
    .await?;
    Answer::of(&Records { records: listed, next: next.map(Id) })
}

/// The one record that the filter names, if it is there and matches.
async fn the_one(store: &dyn Store, filter: &Filter) -> semel::Result<Option<(Arc<Record>, Timestamp)>> {
    let (Some(operation), Some(name)) = (&filter.operation, &filter.name) else { return Ok(None) };
    let Ok(key) = Key::scoped(&filter.scope, operation, name) else { return Ok(None) };
    Ok(walk::live(store, key.id()).await?.filter(|(record, now)| filter.matches(record, *now)))
}

/// Whether a record counts against the page's limit.
#[derive(PartialEq)]
pub(super) enum Counts {
    Yes,
    No,
}

/// Hands over what is found until the page is full, the store is at its end, or the time is up; says where to go on.
pub(super) async fn look(
    store: &dyn Store,
    filter: Filter,
    page: &Page,
    mut each: impl FnMut(&Record, Timestamp) -> Result<Counts, Problem>,
) -> Result<Option<RecordId>, Problem> {
    let started_at = Instant::now();
    let mut walk = Walk::new(store, filter, page.after);
    let mut left = page.limit;
    loop {
        let Some(found) = walk.next_of(left.min(RECORDS_AT_ONCE)).await? else { return Ok(None) };
        for record in &found.records {
            left = left.saturating_sub(usize::from(each(record, found.now)? == Counts::Yes));
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

pub(super) fn state(word: &str) -> Result<StateKind, Problem> {
    let found = StateKind::ALL.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| Problem::invalid("state: write running, done, released or held"))
}
