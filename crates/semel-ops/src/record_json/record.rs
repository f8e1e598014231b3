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
    pub pardoned: u32,
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
    /// Who runs a running record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub owner: Option<&'a str>,
    /// How long a running record's permit is good without renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = u64, required = false))]
    pub lease_ms: Option<u64>,
    /// When a running record's lease was last renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Moment, required = false))]
    pub leased_at: Option<Moment>,
    /// Until when a running record's permit is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Moment, required = false))]
    pub lease_until: Option<Moment>,
    /// Whether nobody renewed a running record in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = bool, required = false))]
    pub lapsed: Option<bool>,
    /// The number that only grows, of a running or done record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = u64, required = false))]
    pub fence: Option<u64>,
    /// What a done record's run produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = OutcomeView, required = false))]
    pub outcome: Option<OutcomeView<'a>>,
    /// Why a released or held record is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub reason: Option<&'a str>,
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
            state: record.state.word().as_str(),
            attempt: record.attempt,
            pardoned: record.pardoned,
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
            owner: None,
            lease_ms: None,
            leased_at: None,
            lease_until: None,
            lapsed: None,
            fence: None,
            outcome: None,
            reason: None,
        }
        .in_state(&record.state, now, content)
    }

    /// With what only a record in this state has.
    fn in_state(mut self, state: &'a State, now: Timestamp, content: Content) -> Self {
        match state {
            State::Running(running) => {
                self.owner = Some(&running.owner);
                self.fence = Some(running.fence.get());
                self.lease_ms = Some(millis(running.lease));
                self.leased_at = Some(Moment(running.leased_at));
                self.lease_until = Some(Moment(running.lease_until()));
                self.lapsed = Some(!running.lease_is_good(now));
            }
            State::Done(done) => {
                self.fence = Some(done.fence.get());
                self.outcome = Some(OutcomeView::of(&done.outcome, content));
            }
            State::Released(released) => self.reason = Some(&released.reason),
            State::Held(held) => self.reason = Some(&held.reason),
        }
        self
    }
}

/// The word for a lapse policy.
fn lapse(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun",
        Lapse::Hold => "hold",
    }
}
