//! What a store keeps for one key, and the draft of it that a store has yet to stamp.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::policy::{Lapse, RETENTION_MAX};

/// How many distinct wrong fingerprints a record remembers; beyond that only their count grows.
pub const MISMATCHED_FINGERPRINTS_MAX: usize = 8;
/// How many ended attempts a record remembers.
pub const HISTORY_MAX: usize = 8;
/// The longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// The store's number for one write of one record. It only grows and is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// What a draft leaves open, for the store to fill in. No store ever stamps it.
    pub(crate) const UNSTAMPED: Self = Self(0);

    /// The version with this number; stores number their writes from 1.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The random number that a caller mints for one ask, and finds again if the reply was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PermitId([u8; 16]);

impl PermitId {
    /// The permit id with this number.
    pub const fn new(number: u128) -> Self {
        Self(number.to_le_bytes())
    }

    /// The number itself. Whoever knows it may settle the record: treat it like a password.
    pub const fn get(self) -> u128 {
        u128::from_le_bytes(self.0)
    }
}

impl fmt::Debug for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitId(…)")
    }
}

/// What a store keeps for one key.
///
/// In the order in which a replay reads it, so that it touches few lines of the processor's cache: each costs as much as
/// everything else that is done with a record in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Kept whole, so that a digest collision is seen and a person can read it.
    pub key: Key,
    /// What the first request looked like, if the caller said.
    pub fingerprint: Option<Fingerprint>,
    /// What a lapsed lease means.
    pub lapse: Lapse,
    /// How long the record lives once settled.
    pub retention: Duration,
    /// The store's number for its last write.
    pub version: Version,
    /// Where the work stands.
    pub state: State,
    /// How often a run was granted for this record: 1, 2, 3 …; 0 if the only one was given back with nothing to
    /// remember.
    pub attempt: u32,
    /// How many attempts no longer count against `attempts_max`, because an operator released the record.
    pub attempts_forgiven: u32,
    /// When the store first wrote it.
    pub first_seen_at: Timestamp,
    /// When the store last wrote it.
    pub changed_at: Timestamp,
    /// What the work is, in words for people (`POST /charges`); never part of the identity.
    pub label: Option<Arc<str>>,
    /// Attempts that ended before the one that `state` speaks of, oldest first. [`history`](Record::history) adds
    /// that one.
    pub past_attempts: Vec<EndedAttempt>,
    /// The event that first claimed it, if the caller said.
    pub first_event: Option<Arc<str>>,
    /// Requests with this key and another fingerprint.
    pub mismatches: Mismatches,
    /// Claims that were answered by replay or busy.
    pub duplicates: Duplicates,
}

/// Where the work stands. A running record has a lease, a done one an outcome; never both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A caller holds a permit.
    Running(Running),
    /// The work ended with an outcome.
    Done(Done),
    /// The run was given up; the next claim runs.
    Released(Released),
    /// No caller may run until a person or a probe decides.
    Held(Held),
}

/// One grant of a run: which permit, for whom, since when. Kept in every state, so that the caller of a settled run is
/// known to people, and its retries are known to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who may settle.
    pub permit_id: PermitId,
    /// Who runs, in words for people.
    pub owner: Arc<str>,
    /// The version of the swap that granted the permit.
    pub fence: Version,
    /// When the permit was granted.
    pub granted_at: Timestamp,
}

impl Grant {
    /// What is known of a run that format 1 settled without keeping its grant: when it ended.
    pub fn forgotten(settled_at: Timestamp) -> Self {
        Self {
            permit_id: PermitId::new(0),
            owner: Arc::from(""),
            fence: Version::UNSTAMPED,
            granted_at: settled_at,
        }
    }
}

/// A permit is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The permit.
    pub grant: Grant,
    /// When the lease was last renewed.
    pub leased_at: Timestamp,
    /// How long the permit is good from then.
    pub lease: Duration,
    /// Steps that need not be repeated.
    pub steps: Vec<Step>,
}

/// The work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The permit it was completed under, so that a retried complete is recognised.
    pub grant: Grant,
    /// When it was completed; retention counts from here and does not slide.
    pub settled_at: Timestamp,
    /// What every retry gets.
    pub outcome: Outcome,
}

/// The run was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The permit it was released under, so that a retried release is recognised.
    pub grant: Grant,
    /// When; retention counts from here.
    pub settled_at: Timestamp,
    /// Why, in words for people.
    pub reason: Box<str>,
    /// Steps that the next attempt need not repeat.
    pub steps: Vec<Step>,
}

/// No caller may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The permit of the run that is in doubt.
    pub grant: Grant,
    /// Since when.
    pub held_at: Timestamp,
    /// Why.
    pub reason: HoldReason,
    /// When a claim last began to probe whether the effect landed.
    pub probed_at: Option<Timestamp>,
    /// Steps that the next attempt need not repeat.
    pub steps: Vec<Step>,
}

/// Why a record is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// The lease lapsed: it is unknown whether the effect landed. A probe may find out.
    Lapsed,
    /// All attempts that the claim allows are used up. Only a person can decide.
    Attempts,
    /// The run held it, because its outcome is unknown: its own words. A probe may find out.
    Unknown(Box<str>),
}

impl HoldReason {
    /// The reason in words for people.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Lapsed => "lapsed",
            Self::Attempts => "attempts",
            Self::Unknown(reason) => reason,
        }
    }

    /// The reason that format 1 kept as this text.
    pub fn from_text(text: &str) -> Self {
        match text {
            "lapsed" => Self::Lapsed,
            "attempts" => Self::Attempts,
            other => Self::Unknown(other.into()),
        }
    }
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// Which one: 1, 2, 3 …
    pub number: u32,
    /// Who ran.
    pub owner: Arc<str>,
    /// When it was granted.
    pub from: Timestamp,
    /// When it ended.
    pub until: Timestamp,
    /// How it ended.
    pub end: AttemptEnd,
    /// Why, in words for people; empty if there is nothing to say.
    pub reason: Box<str>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// With an outcome.
    Completed,
    /// Given up.
    Released,
    /// Its lease ran out.
    Lapsed,
    /// Held, because its outcome is unknown or its attempts are used up.
    Held,
}

impl AttemptEnd {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Released => "released",
            Self::Lapsed => "lapsed",
            Self::Held => "held",
        }
    }
}

/// The value of a finished step.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// What the work calls it.
    pub name: Box<str>,
    /// What it produced.
    pub value: Arc<[u8]>,
}

/// The note that a running record has among its steps once its run has reported that its outcome is unknown. No step of
/// any work has this name. Kept as a step, every store and every earlier release can keep it.
const OUTCOME_UNKNOWN: &str = "semel:outcome-unknown";

impl Step {
    pub(crate) fn outcome_unknown() -> Self {
        Self { name: OUTCOME_UNKNOWN.into(), value: Arc::from([]) }
    }

    /// Whether the work may not give its steps this name.
    pub(crate) fn is_reserved(name: &str) -> bool {
        name == OUTCOME_UNKNOWN
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Step({}, {} bytes)", self.name, self.value.len())
    }
}

/// Requests with a record's key and another fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// How many there were.
    pub count: u64,
    /// The first distinct ones, [`MISMATCHED_FINGERPRINTS_MAX`] at most.
    pub fingerprints: Vec<Fingerprint>,
}

impl Mismatches {
    pub(crate) fn add(&mut self, fingerprint: Fingerprint) {
        self.count = self.count.saturating_add(1);
        if self.fingerprints.len() < MISMATCHED_FINGERPRINTS_MAX && !self.fingerprints.contains(&fingerprint)
        {
            self.fingerprints.push(fingerprint);
        }
    }
}

/// Claims that were answered without a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// How many there were; a few seconds late, exact in the end.
    pub count: u64,
    /// When the last of them came.
    pub last_seen_at: Option<Timestamp>,
}

impl Record {
    /// Until when the record counts, on the store's clock; `None` for ever. Then, there and gone mean the same.
    pub fn live_until(&self) -> Option<Timestamp> {
        self.life().map(|(from, span)| from.plus(span))
    }

    /// From when and how long the record counts; `None` for ever.
    fn life(&self) -> Option<(Timestamp, Duration)> {
        match &self.state {
            State::Running(running) => match self.lapse {
                Lapse::Rerun => Some((running.leased_at, running.lease.saturating_add(self.retention))),
                Lapse::Hold => None,
            },
            State::Done(Done { settled_at, .. }) | State::Released(Released { settled_at, .. }) => {
                (self.retention < RETENTION_MAX).then_some((*settled_at, self.retention))
            }
            State::Held(_) => None,
        }
    }

    /// Whether the record still counts at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.live_until().is_none_or(|until| now < until)
    }

    /// The record as everybody sees it at `now`: a run that lapsed under `hold` is held from the end of its lease on,
    /// whether or not a claim has written that.
    #[must_use]
    pub fn seen_at(self: Arc<Self>, now: Timestamp) -> Arc<Self> {
        match self.lapsed_hold(now) {
            Some(held) => Arc::new(self.in_state(State::Held(held))),
            None => self,
        }
    }

    /// The state as everybody sees it at `now`.
    pub fn kind_at(&self, now: Timestamp) -> StateKind {
        if self.has_lapsed_under_hold(now) { StateKind::Held } else { self.state.kind() }
    }

    fn has_lapsed_under_hold(&self, now: Timestamp) -> bool {
        matches!(&self.state, State::Running(running)
            if self.lapse == Lapse::Hold && !running.lease_is_good(now))
    }

    /// What a run that has lapsed under `hold` is at `now`; `None` if the record is anything else.
    pub(crate) fn lapsed_hold(&self, now: Timestamp) -> Option<Held> {
        match &self.state {
            State::Running(running) if self.has_lapsed_under_hold(now) => Some(Held {
                grant: running.grant.clone(),
                held_at: running.lease_until(),
                reason: HoldReason::Lapsed,
                probed_at: None,
                steps: self.finished_steps().cloned().collect(),
            }),
            State::Running(_) | State::Done(_) | State::Released(_) | State::Held(_) => None,
        }
    }

    /// The attempts that are over, oldest first, [`HISTORY_MAX`] at most.
    pub fn history(&self) -> impl Iterator<Item = EndedAttempt> {
        self.past_attempts.iter().cloned().chain(self.ended_attempt())
    }

    /// The attempt that the state speaks of, if it is over. One that was given back does not count.
    pub(crate) fn ended_attempt(&self) -> Option<EndedAttempt> {
        if self.attempt == 0 {
            return None;
        }
        let (grant, until, end, reason) = match &self.state {
            State::Running(_) => return None,
            State::Done(done) => (&done.grant, done.settled_at, AttemptEnd::Completed, ""),
            State::Released(released) => {
                (&released.grant, released.settled_at, AttemptEnd::Released, &*released.reason)
            }
            State::Held(held) => match &held.reason {
                HoldReason::Lapsed => (&held.grant, held.held_at, AttemptEnd::Lapsed, ""),
                HoldReason::Attempts | HoldReason::Unknown(_) => {
                    (&held.grant, held.held_at, AttemptEnd::Held, held.reason.as_str())
                }
            },
        };
        Some(self.attempt_ended(grant, until, end, reason))
    }

    pub(crate) fn attempt_ended(
        &self,
        grant: &Grant,
        until: Timestamp,
        end: AttemptEnd,
        reason: &str,
    ) -> EndedAttempt {
        let owner = Arc::clone(&grant.owner);
        EndedAttempt {
            number: self.attempt,
            owner,
            from: grant.granted_at,
            until,
            end,
            reason: reason.into(),
        }
    }

    /// The attempts before a next one: the oldest go, so that the history stays within its bound.
    pub(crate) fn past_attempts_and(&self, last: Option<EndedAttempt>) -> Vec<EndedAttempt> {
        let mut past: Vec<_> = self.past_attempts.iter().cloned().chain(last).collect();
        let surplus = past.len().saturating_add(1).saturating_sub(HISTORY_MAX);
        past.drain(..surplus);
        past
    }

    /// What the record takes in memory, beside what it shares with others.
    pub fn heap_bytes(&self) -> usize {
        let texts = [
            self.key.text().len(),
            self.label.as_ref().map_or(0, |label| label.len()),
            self.first_event.as_ref().map_or(0, |event| event.len()),
            self.mismatches.fingerprints.len().saturating_mul(size_of::<Fingerprint>()),
        ];
        let past = self.past_attempts.iter().map(|attempt| {
            size_of::<EndedAttempt>().saturating_add(attempt.owner.len()).saturating_add(attempt.reason.len())
        });
        let state = match &self.state {
            State::Running(running) => running.grant.owner.len(),
            State::Done(done) => done.grant.owner.len().saturating_add(done.outcome.heap_bytes()),
            State::Released(released) => released.grant.owner.len().saturating_add(released.reason.len()),
            State::Held(held) => held.grant.owner.len().saturating_add(held.reason.as_str().len()),
        };
        let steps = self
            .steps()
            .iter()
            .map(|step| size_of::<Step>().saturating_add(step.name.len()).saturating_add(step.value.len()));
        let parts = texts.into_iter().chain(past).chain([state]).chain(steps);
        parts.fold(size_of::<Self>(), usize::saturating_add)
    }

    /// The record in another state, and otherwise as it is.
    #[inline]
    pub(crate) fn in_state(&self, state: State) -> Self {
        // A clone of the whole would copy the old state, only to drop it.
        Self {
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            label: self.label.clone(),
            state,
            attempt: self.attempt,
            attempts_forgiven: self.attempts_forgiven,
            past_attempts: self.past_attempts.clone(),
            lapse: self.lapse,
            retention: self.retention,
            first_seen_at: self.first_seen_at,
            changed_at: self.changed_at,
            first_event: self.first_event.clone(),
            mismatches: self.mismatches.clone(),
            duplicates: self.duplicates,
            version: self.version,
        }
    }

    /// The outcome, if the work is done.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Done(done) => Some(&done.outcome),
            State::Running(_) | State::Released(_) | State::Held(_) => None,
        }
    }

    /// Whether it runs, and its run has reported that its outcome is unknown.
    pub fn outcome_is_unknown(&self) -> bool {
        self.steps().iter().any(|step| Step::is_reserved(&step.name))
    }

    /// The steps that need not be repeated, without what a run noted for as long as it runs.
    pub fn finished_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps().iter().filter(|step| !Step::is_reserved(&step.name))
    }

    /// Everything that is kept as a step: for stores. Readers want [`finished_steps`](Self::finished_steps).
    pub fn steps(&self) -> &[Step] {
        match &self.state {
            State::Running(Running { steps, .. })
            | State::Released(Released { steps, .. })
            | State::Held(Held { steps, .. }) => steps,
            State::Done(_) => &[],
        }
    }
}

impl State {
    /// Which of the four states it is.
    pub const fn kind(&self) -> StateKind {
        match self {
            Self::Running(_) => StateKind::Running,
            Self::Done(_) => StateKind::Done,
            Self::Released(_) => StateKind::Released,
            Self::Held(_) => StateKind::Held,
        }
    }
}

/// A state without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "State documents them")]
pub enum StateKind {
    Running,
    Done,
    Released,
    Held,
}

impl StateKind {
    /// All of them, in the order of a record's life.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Released, Self::Held];

    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Released => "released",
            Self::Held => "held",
        }
    }
}

impl State {
    /// The grant that the state speaks of.
    pub const fn grant(&self) -> &Grant {
        match self {
            Self::Running(Running { grant, .. })
            | Self::Done(Done { grant, .. })
            | Self::Released(Released { grant, .. })
            | Self::Held(Held { grant, .. }) => grant,
        }
    }

    fn grant_mut(&mut self) -> &mut Grant {
        match self {
            Self::Running(Running { grant, .. })
            | Self::Done(Done { grant, .. })
            | Self::Released(Released { grant, .. })
            | Self::Held(Held { grant, .. }) => grant,
        }
    }
}

impl Running {
    /// From when on the lease has lapsed.
    pub fn lease_until(&self) -> Timestamp {
        self.leased_at.plus(self.lease)
    }

    /// Whether nobody else may run at `now`.
    pub fn lease_is_good(&self, now: Timestamp) -> bool {
        now < self.lease_until()
    }
}

/// How long, from the store's now, a record must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// At least so long.
    For(Duration),
    /// Until something else is written.
    Forever,
}

impl Keep {
    /// From when on a record written at `now` may be swept; `None` for never.
    pub fn until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::For(span) => Some(now.plus(span)),
            Self::Forever => None,
        }
    }
}

/// A record that no store has stamped yet. Moments and versions that only the store can know are
/// open in it: [`stamp`](Draft::stamp) fills them in.
///
/// Shared from the start: on its way to the store and back, a record changes hands often and is copied never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft(Arc<Record>);

impl Draft {
    #[inline]
    pub(crate) fn new(record: Record) -> Self {
        Self(Arc::new(record))
    }

    /// The draft that a store kept beside its stamps: stamped with them again, it is the record that was written.
    pub fn from_unstamped(record: Record) -> Self {
        Self::new(record)
    }

    /// The key whose record this is to be.
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// The record with its open moments at zero, for stores that stamp on their server: there, `changed_at`
    /// and `version` are always set, and any other moment or fence only where it is zero.
    pub fn unstamped(&self) -> &Record {
        &self.0
    }

    /// Whether writing it grants a run that was not granted before.
    pub fn grants_run(&self) -> bool {
        matches!(&self.0.state, State::Running(running) if running.grant.fence == Version::UNSTAMPED)
    }

    /// The record as a store that writes it as `version` at `now` must keep it.
    #[must_use]
    pub fn stamp(mut self, version: Version, now: Timestamp) -> Arc<Record> {
        let record = Arc::make_mut(&mut self.0);
        let set = |moment: &mut Timestamp| {
            if moment.is_unstamped() {
                *moment = now;
            }
        };
        set(&mut record.first_seen_at);
        let grant = record.state.grant_mut();
        set(&mut grant.granted_at);
        if grant.fence == Version::UNSTAMPED {
            grant.fence = version;
        }
        match &mut record.state {
            State::Running(running) => set(&mut running.leased_at),
            State::Done(done) => set(&mut done.settled_at),
            State::Released(released) => set(&mut released.settled_at),
            State::Held(held) => set(&mut held.held_at),
        }
        record.changed_at = now;
        record.version = version;
        self.0
    }

    /// How long a store must keep this, judged at `now`: whatever is yet to be stamped starts then.
    pub fn keep(&self, now: Timestamp) -> Keep {
        match self.0.life() {
            Some((from, span)) if from.is_unstamped() => Keep::For(span),
            Some((from, span)) => Keep::For(from.plus(span).since(now)),
            None => Keep::Forever,
        }
    }
}
