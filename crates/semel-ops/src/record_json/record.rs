//! A whole record as JSON.

use semel::Lapse;
use semel::clock::Timestamp;
use semel::record::{EndedAttempt, Record, State, Step};
use semel_http::{HttpRecord, StoredResponse};
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
    /// What the work is, in words for people; `null` if no claim said so.
    #[cfg_attr(feature = "openapi", schema(example = "POST /charges"))]
    pub label: Option<&'a str>,
    /// Who sent the request, as people know it; `null` if no HTTP request made the record.
    #[cfg_attr(feature = "openapi", schema(example = "jwt:alice"))]
    pub caller: Option<&'a str>,
    /// The status of the stored response; `null` if no HTTP request made the record, or if it is not done.
    #[cfg_attr(feature = "openapi", schema(example = 201))]
    pub status: Option<u16>,
    /// The content type of the stored response; `null` if there is none, or if the response was not kept.
    #[cfg_attr(feature = "openapi", schema(example = "application/json"))]
    pub content_type: Option<String>,
    /// `running`, `done`, `released` or `held`. A run that lapsed under `hold` is held.
    #[cfg_attr(feature = "openapi", schema(example = "done"))]
    pub state: &'static str,
    /// Who runs it, or ran it last; `null` if that is not known.
    #[cfg_attr(feature = "openapi", schema(example = "worker-7"))]
    pub owner: Option<&'a str>,
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
    /// The event that first claimed it; `null` if an HTTP request made the record.
    pub first_event: Option<&'a str>,
    /// The id of the HTTP request that made the record: its `X-Request-Id`, or the trace id of its `traceparent`.
    pub first_request: Option<&'a str>,
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
    /// The last 8 attempts that are over, oldest first.
    pub history: Vec<AttemptView>,
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
        /// How long its permit is good without renewal.
        lease_ms: u64,
        /// When its lease was last renewed.
        leased_at: Moment,
        /// Until when its permit is good.
        lease_until: Moment,
        /// Whether it was not renewed in time, and the next claim runs it again.
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

/// An attempt that is over.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = EndedAttempt))]
pub struct AttemptView {
    /// Which one: 1, 2, 3 …
    pub attempt: u32,
    /// Who ran; `null` if that is not known.
    pub owner: Option<String>,
    /// When it was granted.
    pub from: Moment,
    /// When it ended.
    pub until: Moment,
    /// How it ended: `completed`, `released`, `lapsed` or `held`.
    #[cfg_attr(feature = "openapi", schema(example = "released"))]
    pub ended: &'static str,
    /// Why; `null` if there is nothing to say.
    pub reason: Option<String>,
}

impl AttemptView {
    fn of(ended: &EndedAttempt) -> Self {
        Self {
            attempt: ended.number,
            owner: said(&ended.owner).map(str::to_owned),
            from: Moment(ended.from),
            until: Moment(ended.until),
            ended: ended.end.as_str(),
            reason: said(&ended.reason).map(str::to_owned),
        }
    }
}

/// What is empty was not said.
fn said(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
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
    /// The record as it is at `now`, on the store's clock: as everybody [sees](Record::seen_at) it then.
    pub fn of(record: &'a Record, now: Timestamp, content: Content) -> Self {
        let size = |step: &'a Step| StepSize { name: &step.name, bytes: step.value.len() };
        let http = HttpRecord::of(record);
        let response = http.and_then(|http| http.response()?.ok());
        Self {
            id: Id(record.key.id()),
            scope: record.key.scope().collect(),
            operation: record.key.operation(),
            name: record.key.name(),
            label: record.label.as_deref(),
            caller: http.map(|http| http.caller()),
            status: response.as_ref().and_then(StoredResponse::status).map(|status| status.as_u16()),
            content_type: response.as_ref().and_then(StoredResponse::content_type).map(str::to_owned),
            state: record.state.kind().as_str(),
            owner: said(&record.state.grant().owner),
            attempt: record.attempt,
            attempts_forgiven: record.attempts_forgiven,
            lapse: lapse(record.lapse),
            retention_ms: millis(record.retention),
            first_seen_at: Moment(record.first_seen_at),
            changed_at: Moment(record.changed_at),
            since: Moment(format::record::since(record)),
            age_ms: millis(now.since(record.first_seen_at)),
            remembered_until: record.live_until().map(Moment),
            first_event: record.first_event.as_deref().filter(|_| http.is_none()),
            first_request: http.and_then(|http| http.first_request()),
            has_fingerprint: record.fingerprint.is_some(),
            mismatches: record.mismatches.count,
            duplicates: record.duplicates.count,
            last_duplicate_at: record.duplicates.last_seen_at.map(Moment),
            version: record.version.get(),
            history: record.history().map(|attempt| AttemptView::of(&attempt)).collect(),
            steps: record.finished_steps().map(size).collect(),
            of_state: StateView::of(&record.state, now, content),
        }
    }
}

impl<'a> StateView<'a> {
    fn of(state: &'a State, now: Timestamp, content: Content) -> Self {
        match state {
            State::Running(running) => Self::Running {
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
            State::Held(held) => Self::ReleasedOrHeld { reason: held.reason.as_str() },
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
