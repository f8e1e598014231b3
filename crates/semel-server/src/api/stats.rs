//! Counts: what was decided here, and what is in the store.

use semel::Stats;
use semel::store::Finding;
use serde::Serialize;

use super::ask::{Answer, Look, admit};
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::Problem;
use crate::access::Need;
use crate::state::AppState;
use semel_ops::lookup::Counted;
use semel_ops::record_json::{Moment, millis};

/// What was decided, and what there is.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Stats))]
pub(super) struct StatsAnswer<'a> {
    /// By this process since it started; `null` for a token with a scope.
    decisions: Option<Decisions>,
    store: StoreView<'a>,
    census: CensusView,
}

/// How often each was decided.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Decisions {
    run: u64,
    replay: u64,
    busy: u64,
    mismatch: u64,
    held: u64,
    lost: u64,
    unprotected: u64,
    swept: u64,
}

/// Where records live.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Store))]
struct StoreView<'a> {
    /// Its address, without secrets.
    #[cfg_attr(feature = "openapi", schema(example = "file:./semel-data"))]
    address: &'a str,
    /// What its acknowledgements survive, by the settings that were found.
    survives: String,
    /// Whether it takes new claims, by a probe of the last 20 seconds.
    ready: bool,
    /// Why it takes none; `null` if it does.
    #[cfg_attr(feature = "openapi", schema(example = "it is read-only; new claims fail"))]
    not_ready: Option<String>,
    /// The settings of its server that break the promise; checked every 20 seconds.
    broken_settings: Vec<BrokenSetting>,
}

/// A setting of the store's server that breaks the promise: what is acknowledged could be lost.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct BrokenSetting {
    /// The server's own name for it.
    #[cfg_attr(feature = "openapi", schema(example = "synchronous_commit"))]
    setting: String,
    /// What it is set to.
    #[cfg_attr(feature = "openapi", schema(example = "off"))]
    found: Option<String>,
    /// What the promise needs.
    #[cfg_attr(feature = "openapi", schema(example = "on"))]
    wanted: String,
}

/// How many records are in which state, within the token's scope; found out in the background.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Census))]
pub(super) struct CensusView {
    running: u64,
    done: u64,
    released: u64,
    held: u64,
    /// Running, not renewed in time, and not held: the next claim runs them again.
    lapsed: u64,
    /// When the count ended, on the store's clock; `null` before the first.
    as_of: Option<Moment>,
    /// How long it took.
    took_ms: u64,
}

impl<'a> StoreView<'a> {
    fn of(served: &'a AppState) -> Self {
        let status = served.health.latest();
        Self {
            address: &served.store_address,
            survives: served.store.survives(),
            ready: status.not_ready.is_none(),
            not_ready: status.not_ready.map(|_| status.to_string()),
            broken_settings: status.broken_settings.iter().map(BrokenSetting::from).collect(),
        }
    }
}

impl From<&Finding> for BrokenSetting {
    fn from(finding: &Finding) -> Self {
        Self {
            setting: finding.setting.to_string(),
            found: finding.found.as_deref().map(str::to_owned),
            wanted: finding.wanted.to_string(),
        }
    }
}

impl From<Stats> for Decisions {
    fn from(stats: Stats) -> Self {
        let Stats { run, replay, busy, mismatch, held, lost, unprotected, swept } = stats;
        Self { run, replay, busy, mismatch, held, lost, unprotected, swept }
    }
}

impl From<&Counted> for CensusView {
    fn from(counted: &Counted) -> Self {
        Self {
            running: counted.running,
            done: counted.done,
            released: counted.released,
            held: counted.held,
            lapsed: counted.lapsed,
            as_of: counted.as_of.map(Moment),
            took_ms: millis(counted.took),
        }
    }
}

/// See counts of decisions and records
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/stats", tag = "look", operation_id = "stats",
    responses((status = 200, description = "The counts.", body = StatsAnswer), Looked)))]
pub(super) async fn stats(look: Look) -> Result<Answer, Problem> {
    let Look { served, asker, query } = look;
    admit(&asker, Need::List, 1)?;
    query.end()?;
    let scope = asker.0.scope();
    Answer::of(&StatsAnswer {
        decisions: scope.is_empty().then(|| served.semel.stats().into()),
        store: StoreView::of(&served),
        census: (&*served.census.latest(scope)).into(),
    })
}
