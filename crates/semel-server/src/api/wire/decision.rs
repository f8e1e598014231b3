//! What a claim is told.

use semel::{Decision, Permit, RecordedOnce as Once};
use serde::Serialize;

use crate::api::problem::{Code, Problem};
use semel_ops::record_json::{Content, Id, Moment, OutcomeView, StepView, millis};

/// What a claim is told. These are answers, not errors.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = ClaimAnswer))]
pub(crate) enum Decided<'a> {
    /// Run, then complete or release.
    Run(Run<'a>),
    /// The work is done: this is its outcome.
    Replay(Replay<'a>),
    /// Another caller runs: ask again later.
    Busy(Busy<'a>),
    /// Another request was made under this key: refuse.
    Mismatch(Mismatch),
    /// Nobody may run until somebody decides.
    Held(Held<'a>),
}

/// What `record_once` is told. These are answers, not errors.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = RecordOnceAnswer))]
pub(crate) enum RecordedOnce<'a> {
    /// The outcome is stored, and this call stored it.
    Recorded(Recorded),
    /// An outcome was stored before: this is it.
    Replay(Replay<'a>),
    /// A caller runs.
    Busy(Busy<'a>),
    /// Another request was made under this key.
    Mismatch(Mismatch),
    /// Nobody may run until somebody decides.
    Held(Held<'a>),
}

/// What `resume` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = ResumeAnswer))]
pub(crate) enum Resumed<'a> {
    /// Go on: the permit is good, and its lease has started anew.
    Run(Run<'a>),
    /// Another run took over, or the record is gone. Do not go on.
    Lost,
}

/// The right to run.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = RunDecision))]
pub(crate) struct Run<'a> {
    id: Id,
    /// Opaque text that settles the run; keep it like a password. Another process may go on with it.
    #[cfg_attr(feature = "openapi", schema(example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    permit: &'a str,
    /// The how-manieth run this is. Beyond 1, an earlier run may have left effects behind.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    attempt: u32,
    /// A number that grows with every grant of this key, for whatever the work writes to.
    fence: u64,
    /// How long the permit is good without renewal. Renew at a third of it.
    lease_ms: u64,
    /// Steps that earlier attempts finished, and that need not be repeated.
    steps: Vec<StepView<'a>>,
}

/// The work is done.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ReplayDecision))]
pub(crate) struct Replay<'a> {
    id: Id,
    outcome: OutcomeView<'a>,
    /// Until when the outcome is remembered; `null` for ever.
    remembered_until: Option<Moment>,
}

/// Another caller runs.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = BusyDecision))]
pub(crate) struct Busy<'a> {
    id: Id,
    /// Who runs.
    owner: &'a str,
    /// Since when.
    since: Moment,
    /// What is left of its lease: before that, only its end can change the answer.
    retry_after_ms: u64,
}

/// Another request was made under this key.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = MismatchDecision))]
pub(crate) struct Mismatch {
    id: Id,
    /// How many requests had this key and another fingerprint, this one included.
    mismatches: u64,
}

/// Nobody may run.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = HeldDecision))]
pub(crate) struct Held<'a> {
    id: Id,
    /// Why: `lapsed`, `attempts`, or what whoever held it said.
    reason: &'a str,
}

/// The outcome is stored.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = RecordedDecision))]
pub(crate) struct Recorded {
    id: Id,
    /// Until when the outcome is remembered; `null` for ever.
    remembered_until: Option<Moment>,
}

/// A permit as text, and the steps behind it: what a run's answer borrows from.
#[derive(Default)]
pub(crate) struct Granting {
    pub(crate) text: String,
    pub(crate) steps: Vec<semel::record::Step>,
}

impl<'a> Decided<'a> {
    pub(crate) fn of(
        decision: &'a Decision,
        granting: &'a Granting,
        content: Content,
    ) -> Result<Self, Problem> {
        Ok(match decision {
            Decision::Run(permit) => Self::Run(Run::of(permit, granting, content)),
            Decision::Replay(replay) => Self::Replay(Replay::of(replay, content)),
            Decision::Busy(busy) => Self::Busy(Busy::of(busy)),
            Decision::Mismatch(mismatch) => Self::Mismatch(Mismatch::of(mismatch)),
            Decision::Held(held) => Self::Held(Held::of(held)),
            // Claims over HTTP are never made under a policy that lets them run so.
            Decision::Unprotected(_) => {
                return Err(Problem::new(Code::Unavailable, "the store does not answer; ask again"));
            }
        })
    }
}

impl<'a> Run<'a> {
    pub(crate) fn of(permit: &Permit, granting: &'a Granting, content: Content) -> Self {
        Self {
            id: Id(permit.key().id()),
            permit: &granting.text,
            attempt: permit.attempt(),
            fence: permit.fence(),
            lease_ms: millis(permit.lease()),
            steps: granting.steps.iter().map(|step| StepView::of(step, content)).collect(),
        }
    }
}

impl<'a> RecordedOnce<'a> {
    pub(crate) fn of(once: &'a Once, content: Content) -> Self {
        match once {
            Once::Recorded(record) => Self::Recorded(Recorded {
                id: Id(record.key.id()),
                remembered_until: record.live_until().map(Moment),
            }),
            Once::Replay(replay) => Self::Replay(Replay::of(replay, content)),
            Once::Busy(busy) => Self::Busy(Busy::of(busy)),
            Once::Mismatch(mismatch) => Self::Mismatch(Mismatch::of(mismatch)),
            Once::Held(held) => Self::Held(Held::of(held)),
        }
    }
}

impl<'a> Replay<'a> {
    fn of(replay: &'a semel::Replay, content: Content) -> Self {
        Self {
            id: Id(replay.record().key.id()),
            outcome: OutcomeView::of(replay.outcome(), content),
            remembered_until: replay.remembered_until().map(Moment),
        }
    }
}

impl<'a> Busy<'a> {
    fn of(busy: &'a semel::Busy) -> Self {
        Self {
            id: Id(busy.record().key.id()),
            owner: busy.owner(),
            since: Moment(busy.since()),
            retry_after_ms: millis(busy.retry_after()),
        }
    }
}

impl Mismatch {
    fn of(mismatch: &semel::Mismatch) -> Self {
        let record = mismatch.record();
        Self { id: Id(record.key.id()), mismatches: record.mismatches.count }
    }
}

impl<'a> Held<'a> {
    fn of(held: &'a semel::Held) -> Self {
        Self { id: Id(held.record().key.id()), reason: held.reason() }
    }
}
