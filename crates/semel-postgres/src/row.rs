//! A record as a row: which columns there are, how they are written and read back.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{
    Done, Duplicates, Held, Keep, Mismatches, PermitId, Record, Released, Running, State, StateKind, Step,
    Version,
};
use semel::store::Swap;
use semel::{Fingerprint, Key, Lapse, Outcome, OutcomeKind, Result};

use crate::error::corrupt;
use crate::text::{escaped, unescaped};
use crate::value::{Fields, Value};

/// Joins the parts of a scope. Control characters are refused in parts, so no part can hold it.
const SEPARATOR: char = '\u{1f}';

/// The columns of an ask, in the order of [`values`]: what a swap brings along.
pub(crate) const ASKED: [(&str, &str); ASKED_COUNT] = [
    ("id", "bytea"),
    ("expected", "bigint"),
    ("keep", "interval"),
    ("scope", "text"),
    ("operation", "text"),
    ("name", "text"),
    ("state", "text"),
    ("attempt", "integer"),
    ("attempts_forgiven", "bigint"),
    ("lapse", "text"),
    ("retention", "interval"),
    ("fingerprint", "bytea"),
    ("first_seen_at", "timestamptz"),
    ("first_event", "text"),
    ("mismatches", "bigint"),
    ("mismatched", "bytea"),
    ("duplicates", "bigint"),
    ("last_seen_at", "timestamptz"),
    ("permit_id", "uuid"),
    ("fence", "bigint"),
    ("owner", "text"),
    ("since", "timestamptz"),
    ("leased_at", "timestamptz"),
    ("lease", "interval"),
    ("reason", "text"),
    ("steps", "bytea"),
    ("outcome_kind", "text"),
    ("outcome", "bytea"),
    ("primary_reference", "text"),
    ("secondary_reference", "text"),
    ("details", "text"),
];
/// How many columns an ask has.
pub(crate) const ASKED_COUNT: usize = 31;

/// The values of a swap, in the order of [`ASKED`]. What the draft leaves open is null: the server stamps it.
pub(crate) fn values(swap: &Swap) -> [Value<'_>; ASKED_COUNT] {
    let record = swap.next.unstamped();
    let parts = Parts::of(&record.state);
    let outcome = record.outcome();
    let key = &record.key;
    [
        Value::Digest(*key.id().as_bytes()),
        Value::Number(swap.expected.map(Version::get)),
        Value::Span(kept_for(swap.keep)),
        Value::Text(Some(Cow::Owned(joined(key)))),
        Value::Text(Some(Cow::Borrowed(key.operation()))),
        Value::Text(Some(Cow::Borrowed(key.name()))),
        Value::Text(Some(Cow::Borrowed(record.state.kind().as_str()))),
        Value::Small(record.attempt),
        counted(record.attempts_forgiven.into()),
        Value::Text(Some(Cow::Borrowed(lapse_word(record.lapse)))),
        Value::Span(Some(record.retention)),
        Value::Bytes(record.fingerprint.map(|print| Cow::Owned(print.as_bytes().to_vec()))),
        Value::Moment(set(record.first_seen_at)),
        text(record.first_event.as_deref()),
        counted(record.mismatches.count),
        Value::Bytes(mismatched(&record.mismatches)),
        counted(record.duplicates.count),
        Value::Moment(record.duplicates.last_seen_at),
        Value::Uuid(parts.permit_id.map(PermitId::get)),
        Value::Number(parts.fence.map(Version::get).filter(|fence| *fence > 0)),
        text(parts.owner),
        Value::Moment(set(parts.since)),
        Value::Moment(parts.leased_at.and_then(set)),
        Value::Span(parts.lease),
        text(parts.reason),
        Value::Bytes(steps(record.steps())),
        text(outcome.map(|outcome| outcome.kind().as_str())),
        Value::Bytes(outcome.map(|outcome| Cow::Borrowed(&outcome.bytes()[..]))),
        text(outcome.and_then(Outcome::primary)),
        text(outcome.and_then(Outcome::secondary)),
        text(outcome.and_then(Outcome::details_json)),
    ]
}

/// What the columns hold that only some states have.
#[derive(Default)]
struct Parts<'a> {
    permit_id: Option<PermitId>,
    fence: Option<Version>,
    owner: Option<&'a str>,
    since: Timestamp,
    leased_at: Option<Timestamp>,
    lease: Option<Duration>,
    reason: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(state: &'a State) -> Self {
        match state {
            State::Running(running) => Self {
                permit_id: Some(running.grant.permit_id),
                fence: Some(running.grant.fence),
                owner: Some(&running.grant.owner),
                since: running.grant.granted_at,
                leased_at: Some(running.leased_at),
                lease: Some(running.lease),
                reason: None,
            },
            State::Done(done) => Self {
                permit_id: Some(done.grant.permit_id),
                fence: Some(done.grant.fence),
                since: done.settled_at,
                ..Self::default()
            },
            State::Released(Released { settled_at: since, reason, .. })
            | State::Held(Held { held_at: since, reason, .. }) => {
                Self { since: *since, reason: Some(reason), ..Self::default() }
            }
        }
    }
}

fn text(text: Option<&str>) -> Value<'_> {
    Value::Text(text.map(escaped))
}

/// A count; none is null, which costs nothing on its way, and the server makes it a zero again.
fn counted(count: u64) -> Value<'static> {
    Value::Number(Some(count).filter(|count| *count > 0))
}

/// A moment, unless it is left open.
fn set(moment: Timestamp) -> Option<Timestamp> {
    (moment.as_micros() > 0).then_some(moment)
}

fn kept_for(keep: Keep) -> Option<Duration> {
    match keep {
        Keep::For(span) => Some(span),
        Keep::Forever => None,
    }
}

fn joined(key: &Key) -> String {
    let mut scope = String::new();
    for part in key.scope() {
        if !scope.is_empty() {
            scope.push(SEPARATOR);
        }
        scope.push_str(part);
    }
    scope
}

fn lapse_word(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun",
        Lapse::Hold => "hold",
    }
}

fn mismatched(mismatches: &Mismatches) -> Option<Cow<'_, [u8]>> {
    let prints = &mismatches.fingerprints;
    (!prints.is_empty())
        .then(|| prints.iter().flat_map(|print| print.as_bytes().iter().copied()).collect::<Vec<_>>().into())
}

fn steps(steps: &[Step]) -> Option<Cow<'_, [u8]>> {
    let mut bytes = Vec::new();
    for part in steps.iter().flat_map(|step| [step.name.as_bytes(), &step.value]) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    (!bytes.is_empty()).then_some(Cow::Owned(bytes))
}

/// The row of a record as one value, in the order in which [`record`] reads it.
pub(crate) fn shown(row: &str) -> String {
    let columns = ASKED
        .iter()
        .map(|(column, _)| *column)
        .filter(|column| !matches!(*column, "id" | "expected" | "keep"));
    let columns = columns.map(|column| match column {
        "scope" => format!("array_to_string({row}.scope, chr(31))"),
        other => format!("{row}.{other}"),
    });
    format!("ROW({row}.version, {row}.changed_at, {})", columns.collect::<Vec<_>>().join(", "))
}

/// The record that a row from the server holds.
pub(crate) fn record(row: &[u8]) -> Result<Record> {
    let mut fields = Fields::new(row)?;
    let (version, changed_at) = (Version::new(fields.number()?), fields.moment()?);
    let key = key(&mut fields)?;
    let state = word(fields.text()?)?;
    let attempt = fields.small()?;
    let attempts_forgiven = u32::try_from(fields.number()?).map_err(|_| corrupt("a number is too large"))?;
    let lapse = lapse(fields.text()?)?;
    let retention = fields.span()?;
    let fingerprint = fields.optional(Fields::bytes)?.map(fingerprint).transpose()?;
    let first_seen_at = fields.moment()?;
    let first_event = fields.optional(Fields::text)?.map(|text| unescaped(text).into());
    let count = fields.number()?;
    let fingerprints = fields.optional(Fields::bytes)?.map_or(Ok(Vec::new()), fingerprints)?;
    let duplicates = Duplicates { count: fields.number()?, last_seen_at: fields.optional(Fields::moment)? };
    let state = state_of(state, &mut fields)?;
    Ok(Record {
        key,
        fingerprint,
        state,
        attempt,
        attempts_forgiven,
        lapse,
        retention,
        first_seen_at,
        changed_at,
        first_event,
        mismatches: Mismatches { count, fingerprints },
        duplicates,
        version,
    })
}

fn key(fields: &mut Fields<'_>) -> Result<Key> {
    let (scope, operation, name) = (fields.text()?, fields.text()?, fields.text()?);
    Key::scoped(scope.split_terminator(SEPARATOR), operation, name)
        .map_err(|error| corrupt("its key is one that no caller could have given").caused_by(error))
}

fn word(text: &str) -> Result<StateKind> {
    let word = StateKind::ALL.into_iter().find(|word| word.as_str() == text);
    word.ok_or_else(|| corrupt("its state does not exist"))
}

fn lapse(text: &str) -> Result<Lapse> {
    let lapse = [Lapse::Rerun, Lapse::Hold].into_iter().find(|lapse| lapse_word(*lapse) == text);
    lapse.ok_or_else(|| corrupt("its lapse policy does not exist"))
}

fn fingerprint(bytes: &[u8]) -> Result<Fingerprint> {
    let bytes = bytes.try_into().map_err(|_| corrupt("its fingerprint is not 32 bytes long"))?;
    Ok(Fingerprint::from_bytes(bytes))
}

fn fingerprints(bytes: &[u8]) -> Result<Vec<Fingerprint>> {
    bytes.chunks(32).map(fingerprint).collect()
}

fn state_of(word: StateKind, fields: &mut Fields<'_>) -> Result<State> {
    let permit_id = fields.optional(Fields::uuid)?.map(PermitId::new);
    let fence = fields.optional(Fields::number)?.map(Version::new);
    let owner = fields.optional(Fields::text)?.map(unescaped);
    let since = fields.moment()?;
    let leased_at = fields.optional(Fields::moment)?;
    let lease = fields.optional(Fields::span)?;
    let reason = fields.optional(Fields::text)?.map(unescaped);
    let steps = fields.optional(Fields::bytes)?.map_or(Ok(Vec::new()), read_steps)?;
    let outcome = outcome(fields)?;
    let state = match word {
        StateKind::Running => (|| {
            let (permit_id, fence, owner) = (permit_id?, fence?, Arc::from(&*owner?));
            let (granted_at, leased_at, lease) = (since, leased_at?, lease?);
            Some(State::Running(Running { permit_id, owner, fence, granted_at, leased_at, lease, steps }))
        })(),
        StateKind::Done => (|| {
            let (permit_id, fence, outcome) = (permit_id?, fence?, outcome?);
            Some(State::Done(Done { permit_id, fence, settled_at: since, outcome }))
        })(),
        StateKind::Released => {
            reason.map(|reason| State::Released(Released { settled_at: since, reason: reason.into(), steps }))
        }
        StateKind::Held => {
            reason.map(|reason| State::Held(Held { held_at: since, reason: reason.into(), steps }))
        }
    };
    state.ok_or_else(|| corrupt("it lacks what its state needs"))
}

fn outcome(fields: &mut Fields<'_>) -> Result<Option<Outcome>> {
    let kind = fields.optional(Fields::text)?.map(|word| OutcomeKind::from_word(&unescaped(word)));
    let bytes = fields.optional(Fields::bytes)?;
    let mut note = || Ok::<_, semel::Error>(fields.optional(Fields::text)?.map(unescaped));
    let (primary, secondary, details) = (note()?, note()?, note()?);
    let (Some(kind), Some(bytes)) = (kind, bytes) else { return Ok(None) };
    let mut outcome = Outcome::new(kind, bytes);
    if let Some(primary) = primary {
        outcome = outcome.primary_reference(primary);
    }
    if let Some(secondary) = secondary {
        outcome = outcome.secondary_reference(secondary);
    }
    if let Some(details) = details {
        outcome = outcome.details_text(&details);
    }
    Ok(Some(outcome))
}

fn read_steps(mut bytes: &[u8]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    while !bytes.is_empty() {
        let (name, value) = (part(&mut bytes)?, part(&mut bytes)?);
        let name = std::str::from_utf8(name)
            .map_err(|error| corrupt("a step's name is no text").caused_by(error))?;
        steps.push(Step { name: name.into(), value: value.into() });
    }
    Ok(steps)
}

fn part<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let cut = || corrupt("its steps are cut short");
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| cut())?;
    let (part, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
    *bytes = rest;
    Ok(part)
}
