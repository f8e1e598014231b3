//! The store of this server, for tools elsewhere: records exactly as they are kept, a check, and a sweep. No endpoint swaps:
//! what changes a record goes through `operators`.
//!
//! - `blanked`: a record without what is secret in it, for whoever may list records and not see what is in them.

mod blanked;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer as StoreAnswer, Filter, Loaded, Store};
use serde::Deserialize;
use tokio::time::Instant;

use super::ask::{Answer, Json, Look, Page, Query, admit, id, within};
#[cfg(feature = "openapi")]
use super::openapi::{Looked, Refused};
use super::problem::Problem;
#[cfg(feature = "openapi")]
use super::records::StateName;
use super::records::state;
use crate::access::{Authenticated, Caller, Need};
use crate::state::AppState;
use semel_ops::lookup::walk::Pages;
#[cfg(feature = "openapi")]
use semel_ops::record_json::Id;
use semel_ops::served_store::{
    CheckedStore, DamagedRecord, EncodedRecord, LOAD_IDS_MAX, LoadedRecord, LoadedRecords, SWEEP_RECORDS_MAX,
    ScannedRecords, ServedStore, StoreFinding, SweptRecords,
};

/// How much text an answer has before no more records are added.
const ANSWER_BYTES: usize = 4 << 20;
/// How many records are loaded at once.
const LOADED_AT_ONCE: usize = 8;
/// How long a page looks; then it shows what it has, and where to go on.
const LOOK: Duration = Duration::from_millis(500);

/// How a caller is shown records.
#[derive(Clone, Copy)]
enum Sight {
    /// Exactly as they are kept.
    Whole,
    /// Without what is secret in them.
    Blanked,
}

impl Sight {
    /// A whole record holds the permit id that settles a run, so it is for those who may settle it anyway.
    fn of(caller: &Caller) -> Self {
        if caller.may(Need::Content) && caller.may(Need::Act) { Self::Whole } else { Self::Blanked }
    }

    fn encoded(self, record: &Record) -> Result<EncodedRecord, Problem> {
        Ok(match self {
            Self::Whole => EncodedRecord::of(record)?,
            Self::Blanked => EncodedRecord::of(&blanked::blanked(record))?,
        })
    }
}

/// See which store this server has, and what this token may do there
///
/// For tools that look into the store of a running server, such as the command line with `--store`.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/store", tag = "look", operation_id = "store",
    responses((status = 200, description = "The store.", body = ServedStore), Looked)))]
pub(super) async fn store(look: Look) -> Result<Answer, Problem> {
    let Look { served, asker, query } = look;
    admit(&asker, Need::List, 1)?;
    query.end()?;
    let caller = &asker.0;
    Answer::of(&ServedStore {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: served.store_address.clone(),
        survives: served.store.survives(),
        caller: caller.name().to_owned(),
        role: caller.role_word().to_owned(),
        scope: caller.scope().iter().map(ToString::to_string).collect(),
        whole_records: matches!(Sight::of(caller), Sight::Whole),
        may_act: caller.may(Need::Act),
    })
}

/// Which records are wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct ScanQuery {
    /// A part of the tenant's path; once for each, outermost first. Scopes below it are shown, too.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// What kind of work.
    operation: Option<String>,
    /// Which one of its kind.
    name: Option<String>,
    /// In one of these states; any if there is none.
    #[cfg_attr(feature = "openapi", param(required = false, inline, value_type = Vec<StateName>))]
    state: Vec<String>,
    /// First seen before this moment, in microseconds since 1970 on the store's clock.
    first_seen_before_micros: Option<u64>,
    /// How many at most; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    limit: Option<u32>,
    /// Behind this record: `next` of the page before.
    #[cfg_attr(feature = "openapi", param(value_type = Option<Id>))]
    after: Option<String>,
}

/// Read records exactly as they are kept, a page at a time
///
/// Records past their time are among them. With the role `read`, what is secret in a record is blank: the bytes of outcomes and of
/// steps are zeros, and permit ids and fingerprints are 0.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/store/scan", tag = "look", operation_id = "store_scan", params(ScanQuery),
    responses((status = 200, description = "A page.", body = ScannedRecords), Looked)))]
pub(super) async fn scan(look: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = look;
    admit(&asker, Need::List, 1)?;
    let filter = filter(&mut query, &asker.0)?;
    let page = query.page()?;
    query.end()?;
    let mut scanned = ScannedRecords { now_micros: 0, records: Vec::new(), damaged: Vec::new(), next: None };
    read_page(&**served.store, filter, page, &asker.0, &mut scanned).await?;
    Answer::of(&scanned)
}

fn filter(query: &mut Query, caller: &Caller) -> Result<Filter, Problem> {
    let before = query.read("first_seen_before_micros", str::parse)?.map(Timestamp::from_micros);
    Ok(Filter {
        scope: within(caller, query.all("scope").into_iter().map(Into::into).collect())?,
        operation: query.one("operation")?.map(Into::into),
        name: query.one("name")?.map(Into::into),
        states: query.all("state").iter().map(|word| state(word)).collect::<Result<_, _>>()?,
        first_seen_before: before,
    })
}

/// Adds records until there are enough, the answer is large, the store is at its end, or the time is up.
async fn read_page(
    store: &dyn Store,
    filter: Filter,
    page: Page,
    caller: &Caller,
    scanned: &mut ScannedRecords,
) -> Result<(), Problem> {
    let (started_at, sight) = (Instant::now(), Sight::of(caller));
    let mut pages = Pages::new(store, filter, page.after);
    let mut text_bytes = 0_usize;
    loop {
        let left = page.limit.saturating_sub(scanned.records.len());
        let Some(StoreAnswer { now, value, .. }) = pages.next_of(left).await? else { break };
        scanned.now_micros = now.as_micros();
        for record in &value.records {
            let record = sight.encoded(record)?;
            text_bytes = text_bytes.saturating_add(record.text_bytes());
            scanned.records.push(record);
        }
        if caller.scope().is_empty() {
            let damaged = value.damaged.iter();
            scanned.damaged.extend(
                damaged.map(|(id, error)| DamagedRecord { id: id.to_string(), error: error.to_string() }),
            );
        }
        let is_full = scanned.records.len() >= page.limit || text_bytes >= ANSWER_BYTES;
        if is_full || started_at.elapsed() >= LOOK {
            break;
        }
        // On a store in memory, a walk never waits: without this, no other task's turn would come.
        tokio::task::yield_now().await;
    }
    scanned.next = pages.after().map(|id| id.to_string());
    Ok(())
}

/// Which records are wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct LoadQuery {
    /// What identifies a record: 64 hex digits; once for each, at most 64 times.
    #[cfg_attr(feature = "openapi", param(value_type = Vec<Id>, min_items = 1, max_items = 64))]
    id: Vec<String>,
}

/// Read records by their ids, exactly as they are kept
///
/// What is blank for the role `read` is said at `/v1/store/scan`. A record outside the token's scope is answered as if there were none.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/store/load", tag = "look", operation_id = "store_load", params(LoadQuery),
    responses((status = 200, description = "What was found.", body = LoadedRecords), Looked)))]
pub(super) async fn load(look: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = look;
    admit(&asker, Need::List, 1)?;
    let ids = query.all("id");
    query.end()?;
    if ids.is_empty() || ids.len() > LOAD_IDS_MAX {
        return Err(Problem::invalid(format!("give id at least once, and at most {LOAD_IDS_MAX} times")));
    }
    let ids: Vec<_> =
        ids.iter().map(|digits| id(digits)).collect::<Result<_, _>>().map_err(Problem::invalid)?;
    Answer::of(&loaded(&**served.store, &asker.0, &ids).await?)
}

async fn loaded(store: &dyn Store, caller: &Caller, ids: &[RecordId]) -> Result<LoadedRecords, Problem> {
    let mut answer = LoadedRecords { now_micros: 0, records: Vec::with_capacity(ids.len()) };
    let mut text_bytes = 0_usize;
    for ids in ids.chunks(LOADED_AT_ONCE) {
        if text_bytes >= ANSWER_BYTES {
            break;
        }
        let StoreAnswer { now, value, .. } = store.load(ids.to_vec()).await?;
        answer.now_micros = now.as_micros();
        for found in value {
            let record = shown(found, caller)?;
            let bytes = record.record.as_ref().map_or(0, EncodedRecord::text_bytes);
            text_bytes = text_bytes.saturating_add(bytes);
            answer.records.push(record);
        }
    }
    Ok(answer)
}

/// What a caller is shown of what was found. Whose a damaged record is cannot be known, so only those without a scope hear of it.
fn shown(found: Loaded, caller: &Caller) -> Result<LoadedRecord, Problem> {
    let nothing = LoadedRecord { record: None, error: None };
    Ok(match found {
        Ok(Some(record)) if caller.reaches(&record.key) => {
            LoadedRecord { record: Some(Sight::of(caller).encoded(&record)?), error: None }
        }
        Err(error) if caller.scope().is_empty() => {
            LoadedRecord { record: None, error: Some(error.to_string()) }
        }
        Ok(_) | Err(_) => nothing,
    })
}

/// Check the settings of the store against its promise, and whether it takes claims
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/store/check", tag = "look", operation_id = "store_check",
    responses((status = 200, description = "What was found.", body = CheckedStore), Looked)))]
pub(super) async fn check(look: Look) -> Result<Answer, Problem> {
    let Look { served, asker, query } = look;
    admit(&asker, Need::List, 1)?;
    query.end()?;
    let findings = served.store.check().await?;
    let status = served.health.now().await;
    Answer::of(&CheckedStore {
        findings: findings.iter().map(StoreFinding::from).collect(),
        ready: status.not_ready.is_none(),
        not_ready: status.not_ready.map(|_| status.to_string()),
    })
}

/// Removes records past their retention.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SweepStore {
    /// How many at most.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000, example = 1_024))]
    limit: u32,
}

/// Remove records past their retention
///
/// Servers do so by themselves. A sweep is of all scopes, so it needs a token without one.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/store/sweep", tag = "operate", operation_id = "store_sweep",
    request_body = SweepStore,
    responses((status = 200, description = "What was removed.", body = SweptRecords), Refused)))]
pub(super) async fn sweep(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    if !asker.0.scope().is_empty() {
        return Err(Problem::forbidden("a sweep is of all scopes; ask with a token that has none"));
    }
    let SweepStore { limit } = body.read()?;
    if !(1..=SWEEP_RECORDS_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("limit: write a number from 1 to {SWEEP_RECORDS_MAX}")));
    }
    let swept = served.semel.sweep(usize::try_from(limit).unwrap_or(usize::MAX)).await?;
    tracing::info!(caller = asker.0.name(), removed = swept.removed, "semel: an operator swept the store");
    served.census.look_soon();
    Answer::of(&SweptRecords::from(swept))
}
