//! What a ruling depends on, in every combination, and the records that stand for it.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{
    AttemptEnd, Done, Duplicates, EndedAttempt, Grant, Held, HoldReason, Mismatches, PermitId, Record,
    Released, Running, State, Step, Version,
};
use semel::{Fingerprint, Key, Lapse, Outcome};

pub(super) const FIRST_SEEN_AT: u64 = 900;
pub(super) const GRANTED_AT: u64 = 1_000;
pub(super) const LEASED_AT: u64 = 1_100;
pub(super) const CHANGED_AT: u64 = 1_150;
pub(super) const LEASE_END: u64 = 1_200;
pub(super) const RETENTION_END: u64 = 2_100;
pub(super) const LIFE_END: u64 = 2_200;

pub(super) const LEASE: Duration = Duration::from_micros(100);
pub(super) const RETENTION: Duration = Duration::from_millis(1);
pub(super) const VERSION: Version = Version::new(7);
pub(super) const FENCE: Version = Version::new(5);
pub(super) const ATTEMPT: u32 = 3;
pub(super) const DUPLICATES: Duplicates =
    Duplicates { count: 2, last_seen_at: Some(Timestamp::from_micros(1_120)) };

pub(super) const MINE: PermitId = PermitId::new(0xA);
pub(super) const OTHERS: PermitId = PermitId::new(0xB);

/// What the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    RunningRerun,
    RunningHold,
    Done,
    Released,
    /// Held after a lapse, and not probed yet.
    Held,
    /// Held after a lapse, and probed less than ten seconds ago.
    HeldProbed,
    /// Held because its attempts are used up.
    HeldForAttempts,
}

impl Found {
    pub(super) const ALL: [Self; 8] = [
        Self::Absent,
        Self::RunningRerun,
        Self::RunningHold,
        Self::Done,
        Self::Released,
        Self::Held,
        Self::HeldProbed,
        Self::HeldForAttempts,
    ];

    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Held | Self::HeldProbed | Self::HeldForAttempts)
    }

    pub(super) fn is_running(self) -> bool {
        matches!(self, Self::RunningRerun | Self::RunningHold)
    }

    /// Nothing, or past its life: what is settled lives for its retention, what runs under `rerun` for its
    /// lease and its retention, and what is or may yet be held lives for ever.
    pub(super) fn is_gone(self, moment: Moment) -> bool {
        match self {
            Self::Absent => true,
            Self::Done | Self::Released => moment >= Moment::AtRetentionEnd,
            Self::RunningRerun => moment >= Moment::AtLifeEnd,
            Self::RunningHold | Self::Held | Self::HeldProbed | Self::HeldForAttempts => false,
        }
    }

    /// When the life of what was found ends.
    pub(super) fn life_end(self) -> Option<u64> {
        match self {
            Self::Done | Self::Released => Some(RETENTION_END),
            Self::RunningRerun => Some(LIFE_END),
            Self::Absent | Self::RunningHold | Self::Held | Self::HeldProbed | Self::HeldForAttempts => None,
        }
    }
}

/// The store's now, on either side of every deadline. All of them are tried on every state: a deadline that
/// is not a state's own must not matter to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::enum_variant_names, reason = "every deadline is an end")]
pub(super) enum Moment {
    BeforeLeaseEnd,
    AtLeaseEnd,
    AfterLeaseEnd,
    BeforeRetentionEnd,
    AtRetentionEnd,
    AfterRetentionEnd,
    BeforeLifeEnd,
    AtLifeEnd,
    AfterLifeEnd,
}

impl Moment {
    pub(super) const ALL: [Self; 9] = [
        Self::BeforeLeaseEnd,
        Self::AtLeaseEnd,
        Self::AfterLeaseEnd,
        Self::BeforeRetentionEnd,
        Self::AtRetentionEnd,
        Self::AfterRetentionEnd,
        Self::BeforeLifeEnd,
        Self::AtLifeEnd,
        Self::AfterLifeEnd,
    ];

    pub(super) fn micros(self) -> u64 {
        match self {
            Self::BeforeLeaseEnd => LEASE_END - 1,
            Self::AtLeaseEnd => LEASE_END,
            Self::AfterLeaseEnd => LEASE_END + 1,
            Self::BeforeRetentionEnd => RETENTION_END - 1,
            Self::AtRetentionEnd => RETENTION_END,
            Self::AfterRetentionEnd => RETENTION_END + 1,
            Self::BeforeLifeEnd => LIFE_END - 1,
            Self::AtLifeEnd => LIFE_END,
            Self::AfterLifeEnd => LIFE_END + 1,
        }
    }

    pub(super) fn now(self) -> Timestamp {
        Timestamp::from_micros(self.micros())
    }

    pub(super) fn lease_lapsed(self) -> bool {
        self >= Self::AtLeaseEnd
    }
}

/// The record's fingerprint, if it has one.
pub(super) const FIRST_REQUEST: Fingerprint = Fingerprint::from_bytes([1; 32]);
/// A fingerprint that a mismatch noted before.
pub(super) const NOTED_REQUEST: Fingerprint = Fingerprint::from_bytes([2; 32]);
/// A fingerprint that nobody asked with yet.
pub(super) const NEW_REQUEST: Fingerprint = Fingerprint::from_bytes([3; 32]);

/// How the fingerprints of record and ask relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prints {
    Same,
    Other,
    OtherAgain,
    NoneOnAsk,
    NoneOnRecord,
    NoneOnBoth,
}

impl Prints {
    pub(super) const ALL: [Self; 6] =
        [Self::Same, Self::Other, Self::OtherAgain, Self::NoneOnAsk, Self::NoneOnRecord, Self::NoneOnBoth];

    pub(super) fn differ(self) -> bool {
        matches!(self, Self::Other | Self::OtherAgain)
    }

    pub(super) fn on_ask(self) -> Option<Fingerprint> {
        match self {
            Self::Same | Self::NoneOnRecord => Some(FIRST_REQUEST),
            Self::Other => Some(NEW_REQUEST),
            Self::OtherAgain => Some(NOTED_REQUEST),
            Self::NoneOnAsk | Self::NoneOnBoth => None,
        }
    }

    pub(super) fn on_record(self) -> Option<Fingerprint> {
        match self {
            Self::Same | Self::Other | Self::OtherAgain | Self::NoneOnAsk => Some(FIRST_REQUEST),
            Self::NoneOnRecord | Self::NoneOnBoth => None,
        }
    }
}

pub(super) fn key() -> Key {
    Key::scoped(["acme", "eu"], "charge", "order-7").unwrap()
}

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step { name: "reserve".into(), value: Arc::from(*b"r-1") },
        Step { name: "charge".into(), value: Arc::from(*b"c-1") },
    ]
}

/// What a done record was completed with.
pub(super) fn first_outcome() -> Outcome {
    Outcome::success("paid").reference("primary", "pay-1")
}

/// The same bytes and another reference: still another outcome.
pub(super) fn other_outcome() -> Outcome {
    Outcome::success("paid").reference("primary", "pay-2")
}

/// An attempt that ended before the one that the record is about.
pub(super) fn past_attempt() -> EndedAttempt {
    EndedAttempt {
        number: ATTEMPT - 1,
        owner: "worker-0".into(),
        from: Timestamp::from_micros(FIRST_SEEN_AT),
        until: Timestamp::from_micros(GRANTED_AT - 1),
        end: AttemptEnd::Released,
        reason: "no network".into(),
    }
}

/// The grant of the permit [`MINE`].
pub(super) fn grant() -> Grant {
    let granted_at = Timestamp::from_micros(GRANTED_AT);
    Grant { permit_id: MINE, owner: "worker-1".into(), fence: FENCE, granted_at }
}

/// The record under the permit [`MINE`].
pub(super) fn record(found: Found, prints: Prints, attempts_forgiven: u32) -> Option<Record> {
    let at = Timestamp::from_micros;
    let (grant, settled_at) = (grant(), at(LEASED_AT));
    let held = |reason, probed_at| {
        State::Held(Held { grant: self::grant(), held_at: at(LEASED_AT), reason, probed_at, steps: steps() })
    };
    let state = match found {
        Found::Absent => return None,
        Found::RunningRerun | Found::RunningHold => {
            State::Running(Running { grant, leased_at: at(LEASED_AT), lease: LEASE, steps: steps() })
        }
        Found::Done => State::Done(Done { grant, settled_at, outcome: first_outcome() }),
        Found::Released => {
            State::Released(Released { grant, settled_at, reason: "no funds".into(), steps: steps() })
        }
        Found::Held => held(HoldReason::Lapsed, None),
        Found::HeldProbed => held(HoldReason::Lapsed, Some(at(CHANGED_AT))),
        Found::HeldForAttempts => held(HoldReason::Attempts, None),
    };
    Some(Record {
        key: key(),
        fingerprint: prints.on_record(),
        label: Some("POST /charges".into()),
        state,
        attempt: ATTEMPT,
        attempts_forgiven,
        past_attempts: vec![past_attempt()],
        lapse: if found == Found::RunningHold { Lapse::Hold } else { Lapse::Rerun },
        retention: RETENTION,
        first_seen_at: at(FIRST_SEEN_AT),
        changed_at: at(CHANGED_AT),
        first_event: Some("event-1".into()),
        mismatches: Mismatches { count: 4, fingerprints: vec![NOTED_REQUEST] },
        duplicates: DUPLICATES,
        version: VERSION,
    })
}
