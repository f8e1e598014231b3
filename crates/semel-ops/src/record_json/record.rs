//! A whole record as JSON.

use semel::Lapse;
use semel::clock::Timestamp;
use semel::record::{Record, State, Step};
use serde::Serialize;

use super::outcome::{Content, OutcomeView};
use super::parts::{Id, Moment, millis};
use crate::format;

/// One record; its members only ever grow in number.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Record))]
pub struct RecordView<'a> {
    /// What identifies it.
    pub id: Id,
    /// The tenant's path, outermost first.
    pub scope: Vec<&'a str>,
    /// What kind of work it is.
    pub operation: &'a str,
    /// Which one of its kind.
    pub name: &'a str,
    /// `running`, `done`, `released` or `held`.
    #[cfg_attr(feature = "openapi", schema(example = "done"))]
    pub state: &'static str,
    /// How often a run was granted.
    pub attempt: u32,
    /// How many of them no longer count against a bound.
    pub attempts_forgiven: u32,
    /// What a lapsed lease means: `rerun` or `hold`.
    #[cfg_attr(feature = "openapi", schema(example = "rerun"))]
    pub lapse: &'static str,
    /// How long it is remembered once settled.
    pub retention_ms: u64,
    /// When the store first wrote it.
    pub first_seen_at: Moment,
    /// When the store last wrote it.
    pub changed_at: Moment,
    /// Since when it is in its state.
    pub since: Moment,
    /// How long ago it was first seen.
    pub age_ms: u64,
    /// Until when it is remembered; `null` for ever.
    pub remembered_until: Option<Moment>,
    /// The event that first claimed it.
    pub first_event: Option<&'a str>,
    /// Whether requests under this key are compared.
    pub has_fingerprint: bool,
    /// How many requests had this key and another fingerprint.
    pub mismatches: u64,
    /// How many claims were answered without a run.
    pub duplicates: u64,
    /// When the last of them came.
    pub last_duplicate_at: Option<Moment>,
    /// The store's number for its last write.
    pub version: u64,
    /// The steps that a next attempt need not repeat, by size.
    pub steps: Vec<StepSize<'a>>,
    /// What only a record in this state has.
    #[serde(flatten)]
    pub of_state: StateView<'a>,
}

/// What only a record in its state has.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RecordState))]
#[serde(untagged)]
pub enum StateView<'a> {
    /// A running record.
    Running {
        /// Who runs it.
        owner: &'a str,
        /// How long its permit is good without renewal.
        lease_ms: u64,
        /// When its lease was last renewed.
        leased_at: Moment,
        /// Until when its permit is good.
        lease_until: Moment,
        /// Whether nobody renewed it in time.
        lapsed: bool,
        /// The number that only grows.
        fence: u64,
    },
    /// A done record.
    Done {
        /// The number that only grows.
        fence: u64,
        /// What its run produced.
        outcome: OutcomeView<'a>,
    },
    /// A released or held record.
    ReleasedOrHeld {
        /// Why it is so.
        reason: &'a str,
    },
}

/// A step by its size.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepSize<'a> {
    /// What the work calls it.
    pub name: &'a str,
    /// How many bytes its value has.
    pub bytes: usize,
}

impl<'a> RecordView<'a> {
    /// The record as it is at `now`, on the store's clock.
    pub fn of(record: &'a Record, now: Timestamp, content: Content) -> Self {
        let size = |step: &'a Step| StepSize { name: &step.name, bytes: step.value.len() };
        Self {
            id: Id(record.key.id()),
            scope: record.key.scope().collect(),
            operation: record.key.operation(),
            name: record.key.name(),
            state: record.state.kind().as_str(),
            attempt: record.attempt,
            attempts_forgiven: record.attempts_forgiven,
            lapse: lapse(record.lapse),
            retention_ms: millis(record.retention),
            first_seen_at: Moment(record.first_seen_at),
            changed_at: Moment(record.changed_at),
            since: Moment(format::record::since(record)),
            age_ms: millis(now.since(record.first_seen_at)),
            remembered_until: record.live_until().map(Moment),
            first_event: record.first_event.as_deref(),
            has_fingerprint: record.fingerprint.is_some(),
            mismatches: record.mismatches.count,
            duplicates: record.duplicates.count,
            last_duplicate_at: record.duplicates.last_seen_at.map(Moment),
            version: record.version.get(),
            steps: record.steps().iter().map(size).collect(),
            of_state: StateView::of(&record.state, now, content),
        }
    }
}

impl<'a> StateView<'a> {
    fn of(state: &'a State, now: Timestamp, content: Content) -> Self {
        match state {
            State::Running(running) => Self::Running {
                owner: &running.grant.owner,
                lease_ms: millis(running.lease),
                leased_at: Moment(running.leased_at),
                lease_until: Moment(running.lease_until()),
                lapsed: !running.lease_is_good(now),
                fence: running.grant.fence.get(),
            },
            State::Done(done) => {
                Self::Done { fence: done.grant.fence.get(), outcome: OutcomeView::of(&done.outcome, content) }
            }
            State::Released(released) => Self::ReleasedOrHeld { reason: &released.reason },
            State::Held(held) => Self::ReleasedOrHeld { reason: &held.reason },
        }
    }
}

/// The word for a lapse policy.
fn lapse(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun",
        Lapse::Hold => "hold",
    }
}
