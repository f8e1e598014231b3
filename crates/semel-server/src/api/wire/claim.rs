//! What a caller wants, a claim alone or with the outcome that is already there, and what it is told.

use std::time::Duration;

use semel::record::{LABEL_BYTES_MAX, PermitId};
use semel::{Decision, Fingerprint, Key, Lapse, OnOutage, Permit, RecordedOnce as Once};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::outcome::{Outcome, Text, given};
use crate::access::{Caller, Need};
use crate::api::problem::{Code, Problem};
use crate::serve::note_key;
use semel_http::json::canonical;
use semel_ops::record_json::{Content, Id, Moment, OutcomeView, StepView, millis, read_hex};

/// The longest that a request may wait for somebody else's run.
pub(crate) const WAIT_MAX: Duration = Duration::from_mins(1);
/// The longest that an owner or the id of an event may be.
const WORDS_BYTES_MAX: usize = 1_024;

/// What a lapsed lease means.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum LapseWord {
    /// The run is taken for dead, and the next claim runs.
    Rerun,
    /// Nobody knows whether the effect landed: somebody must decide.
    Hold,
}

/// How the bytes of an outcome are shown.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeAs {
    /// As JSON if they are JSON text, else as base64.
    Json,
    /// As base64.
    Base64,
}

impl OutcomeAs {
    /// What this caller is shown.
    pub(crate) fn content(wanted: Option<Self>, caller: &Caller) -> Content {
        match wanted {
            _ if !caller.may(Need::Content) => Content::Hidden,
            Some(Self::Base64) => Content::Base64,
            Some(Self::Json) | None => Content::Json,
        }
    }
}

/// Two bodies with the same members, but for the last: unknown ones are refused by name, which rules out a body within
/// a body.
macro_rules! bodies {
    (
        $(#[$claim_doc:meta])* $claim:ident, $(#[$with_doc:meta])* $with:ident, for<$a:lifetime>
        { $($(#[$member_doc:meta])* $member:ident: $type:ty,)* }
    ) => {
        $(#[$claim_doc])*
        #[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $claim<$a> {
            $($(#[$member_doc])* $member: $type,)*
            /// How long to wait for a running caller to settle, instead of being told that it is busy; not in a batch.
            #[cfg_attr(feature = "openapi", schema(maximum = 60_000, example = 0))]
            wait_ms: Option<u64>,
        }

        $(#[$with_doc])*
        #[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $with<$a> {
            $($(#[$member_doc])* $member: $type,)*
            /// What is already there.
            outcome: Outcome<$a>,
        }

        impl<$a> $with<$a> {
            /// The claim, and the outcome that comes with it.
            pub(crate) fn split(self) -> ($claim<$a>, Outcome<$a>) {
                ($claim { $($member: self.$member,)* wait_ms: None }, self.outcome)
            }
        }
    };
}

bodies! {
    /// Asks to run. Exactly one of all callers of a key is told to.
    Claim,
    /// Stores an outcome that is already there, unless the key is taken: claim and complete in one.
    RecordOnce,
    for<'a> {
        /// The tenant's path, outermost first: at most 8 parts.
        #[serde(borrow, default)]
        #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, max_items = 8, example = json!(["acme"])))]
        scope: Vec<Text<'a>>,
        /// What kind of work this is.
        #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 512, example = "charge"))]
        operation: Text<'a>,
        /// Which one of its kind.
        #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 1_024, example = "order-1042"))]
        name: Text<'a>,
        /// The SHA-256 of the request, or another digest of 32 bytes, in 64 hex digits: another request under the same
        /// key is a mismatch.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^[0-9a-fA-F]{64}$"))]
        fingerprint: Option<Text<'a>>,
        /// The request itself, instead of its fingerprint. JSON is compared by its meaning (RFC 8785): the order of
        /// members, white space, `1.0` and `1` do not matter. A number that a double cannot hold exactly, or a member
        /// given twice, is compared byte by byte.
        #[serde(borrow, default, deserialize_with = "given")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
        request: Option<&'a RawValue>,
        /// A random number of 128 bits in 32 hex digits, minted by the caller: with it, a claim may be sent again after
        /// a lost reply and finds its own run.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^[0-9a-fA-F]{32}$"))]
        permit_id: Option<Text<'a>>,
        /// Who asks, in words for people; else the name of the token.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 1_024, example = "worker-7"))]
        owner: Option<Text<'a>>,
        /// How long the permit is good without renewal; else as the server is set up, a minute.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86_400_000, example = 60_000))]
        lease_ms: Option<u64>,
        /// How long the outcome is remembered; else as the server is set up, a day.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 3_153_600_000_000_u64, example = 86_400_000))]
        retention_ms: Option<u64>,
        /// What a lapsed lease means.
        lapse: Option<LapseWord>,
        /// How many runs may be granted before the record is held.
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        attempts_max: Option<u32>,
        /// A running record of the same owner is this caller's own, from before it restarted: take it over at once.
        #[serde(default)]
        reentrant: bool,
        /// What the work is, in words for people; never part of the identity. The record shows the last claim's.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 256, example = "POST /charges"))]
        label: Option<Text<'a>>,
        /// The event that asks; a new record remembers it. Else the id of the request: `X-Request-Id`, or the trace id of
        /// `traceparent`.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 1_024))]
        first_event: Option<Text<'a>>,
        /// How the bytes of a replayed outcome are shown: as JSON where they are JSON text, unless this says `base64`.
        outcome_as: Option<OutcomeAs>,
    }
}

/// A claim that may be made.
pub(crate) struct Asked {
    pub(crate) claim: semel::Claim,
    pub(crate) wait: Duration,
    pub(crate) content: Content,
}

impl Claim<'_> {
    /// The claim in the engine's words, if the caller may make it, in a request with this id.
    pub(crate) fn asked(&self, caller: &Caller, request_id: Option<&str>) -> Result<Asked, Problem> {
        let key = Key::scoped(&self.scope, &self.operation, &self.name)?;
        note_key(key.id());
        if !caller.reaches(&key) {
            return Err(Problem::forbidden("the key is outside this token's scope"));
        }
        let owner = short("owner", self.owner.as_ref())?.unwrap_or_else(|| caller.name());
        // A server cannot let its callers run without protection: they would not know.
        let mut claim = semel::Claim::new(&key).owner(owner).on_outage(OnOutage::Closed);
        if let Some(fingerprint) = self.fingerprint()? {
            claim = claim.fingerprint(fingerprint);
        }
        if let Some(permit_id) = &self.permit_id {
            let id = read_hex(permit_id).map(u128::from_be_bytes).map(PermitId::new);
            claim = claim.permit_id(id.ok_or_else(|| {
                Problem::invalid("permit_id is not 32 hex digits; mint 16 random bytes for each ask")
            })?);
        }
        if let Some(label) = &self.label {
            if label.len() > LABEL_BYTES_MAX {
                let detail = format!("label is longer than {LABEL_BYTES_MAX} bytes; shorten it");
                return Err(Problem::invalid(detail));
            }
            claim = claim.label(label);
        }
        if let Some(event) = short("first_event", self.first_event.as_ref())?.or(request_id) {
            claim = claim.first_event(event);
        }
        if self.reentrant {
            claim = claim.reentrant();
        }
        let content = OutcomeAs::content(self.outcome_as, caller);
        Ok(Asked { claim: self.under_policy(claim), wait: self.wait()?, content })
    }

    fn under_policy(&self, mut claim: semel::Claim) -> semel::Claim {
        if let Some(millis) = self.lease_ms {
            claim = claim.lease(Duration::from_millis(millis));
        }
        if let Some(millis) = self.retention_ms {
            claim = claim.retention(Duration::from_millis(millis));
        }
        if let Some(attempts) = self.attempts_max {
            claim = claim.attempts_max(attempts);
        }
        match self.lapse {
            Some(LapseWord::Rerun) => claim.lapse(Lapse::Rerun),
            Some(LapseWord::Hold) => claim.lapse(Lapse::Hold),
            None => claim,
        }
    }

    fn fingerprint(&self) -> Result<Option<Fingerprint>, Problem> {
        match (&self.fingerprint, self.request) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                Err(Problem::invalid("there is both a fingerprint and a request; give one of them"))
            }
            (Some(digits), None) => match read_hex(digits) {
                Some(bytes) => Ok(Some(Fingerprint::from_bytes(bytes))),
                None => {
                    Err(Problem::invalid("fingerprint is not 64 hex digits; give a SHA-256, or `request`"))
                }
            },
            (None, Some(request)) => {
                let text = request.get().as_bytes();
                // The canonical form has the fingerprint that `Semel::once` gives the same request: a record that was
                // stored by one is found by the other, and by earlier versions.
                let canonical = canonical(text, &[]).and_then(|form| serde_json::from_slice(&form).ok());
                Ok(Some(match canonical {
                    Some::<Value>(request) => Fingerprint::of(&request)?,
                    None => Fingerprint::of_parts([b"raw".as_slice(), text]),
                }))
            }
        }
    }

    fn wait(&self) -> Result<Duration, Problem> {
        let wait = Duration::from_millis(self.wait_ms.unwrap_or(0));
        if wait > WAIT_MAX {
            return Err(Problem::invalid("wait_ms is over 60000; ask again instead of waiting longer"));
        }
        Ok(wait)
    }
}

/// Words for people are kept in every record: they have a bound.
fn short<'a>(member: &str, text: Option<&'a Text<'_>>) -> Result<Option<&'a str>, Problem> {
    match text {
        Some(text) if text.len() > WORDS_BYTES_MAX => {
            Err(Problem::invalid(format!("{member} is longer than {WORDS_BYTES_MAX} bytes; shorten it")))
        }
        text => Ok(text.map(|text| &**text)),
    }
}

/// What a claim is told. These are answers, not errors.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ClaimAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RecordOnceAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ResumeAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Resumed<'a> {
    /// Go on: the permit is good, and its lease has started anew.
    Run(Run<'a>),
    /// The run was completed under this permit: there is nothing left to do.
    Done,
    /// Another run took over, or the record is gone. Do not go on.
    Lost,
}

/// The right to run.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RunDecision))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReplayDecision))]
pub(crate) struct Replay<'a> {
    id: Id,
    outcome: OutcomeView<'a>,
    /// Until when the outcome is remembered; `null` for ever.
    remembered_until: Option<Moment>,
}

/// Another caller runs.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BusyDecision))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MismatchDecision))]
pub(crate) struct Mismatch {
    id: Id,
    /// How many requests had this key and another fingerprint, this one included.
    mismatches: u64,
}

/// Nobody may run.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = HeldDecision))]
pub(crate) struct Held<'a> {
    id: Id,
    /// Why: `lapsed`, `attempts`, or what whoever held it said.
    reason: &'a str,
}

/// The outcome is stored.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RecordedDecision))]
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
