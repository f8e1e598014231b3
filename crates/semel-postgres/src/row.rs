//! A record as a row: which columns there are, how they are written and read back.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use semel::clock::Timestamp;
use semel::record::{
    Done, Duplicates, EndedAttempt, Grant, Held, HoldReason, Keep, LABEL_BYTES_MAX, Mismatches, PermitId,
    Record, Released, Running, State, StateKind, Step, Version,
};
use semel::store::{Loaded, Swap};
use semel::{Error, Fingerprint, Key, Lapse, Outcome, OutcomeKind, RecordId, Result};

use crate::error::corrupt;
use crate::lists::{past_attempts, past_attempts_json, references, references_json};
use crate::statement::{Known, PARAMETER_TYPES};
use crate::text::{escaped, escaped_but_not, unescaped};
use crate::value::{Array, Fields, Value};

/// Joins the parts of a scope. Control characters are refused in parts, so no part can hold it.
const SEPARATOR: char = '\u{1f}';
/// The kinds of the two references that 0.1 had columns for. They are still written, so that 0.1 can replay them.
const PRIMARY: &str = "primary";
const SECONDARY: &str = "secondary";
/// What is stored for the outcomes and reasons that have a meaning of their own. The same word from the application is
/// stored in another form.
const KIND_WORDS: [&str; 2] = ["success", "failure"];
const HOLD_WORDS: [&str; 2] = ["lapsed", "attempts"];

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
    ("pardoned", "bigint"),
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
    ("granted_at", "timestamptz"),
    ("probed_at", "timestamptz"),
    ("label", "text"),
    ("past_attempts", "jsonb"),
    ("outcome_references", "jsonb"),
];
/// How many columns an ask has.
pub(crate) const ASKED_COUNT: usize = 36;

/// The columns of [`ASKED`] that are not null in the first claim of a key, or may not be.
pub(crate) const CLAIMED: [&str; 15] = [
    "id",
    "keep",
    "scope",
    "operation",
    "name",
    "state",
    "attempt",
    "lapse",
    "retention",
    "fingerprint",
    "first_event",
    "permit_id",
    "owner",
    "lease",
    "label",
];
/// The same of a run that is completed. What a record is called does not change.
pub(crate) const COMPLETED: [&str; 18] = [
    "id",
    "expected",
    "keep",
    "state",
    "attempt",
    "lapse",
    "retention",
    "fingerprint",
    "first_seen_at",
    "first_event",
    "permit_id",
    "fence",
    "owner",
    "outcome_kind",
    "outcome",
    "granted_at",
    "label",
    "outcome_references",
];
/// What never changes in a row.
pub(crate) const UNCHANGING: [&str; 4] = ["id", "scope", "operation", "name"];

/// The statement for a swap that is alone, and its values. Most need few of the columns, and the server spends time on every
/// parameter, also on one that is null.
pub(crate) fn question(swap: &Swap) -> (Known, Vec<Value<'_>>) {
    static FRESH: LazyLock<[Need; ASKED_COUNT]> = LazyLock::new(|| needs(&CLAIMED, &[]));
    static SETTLED: LazyLock<[Need; ASKED_COUNT]> = LazyLock::new(|| needs(&COMPLETED, &UNCHANGING));
    let (needs, few, all) = if swap.expected.is_none() {
        (&*FRESH, Known::InsertClaim, Known::InsertOne)
    } else {
        (&*SETTLED, Known::UpdateCompleted, Known::UpdateOne)
    };
    let values = values(swap);
    let is_enough = values.iter().zip(needs).all(|(value, need)| *need != Need::Null || value.is_null());
    if !is_enough {
        return (all, values.into());
    }
    let wanted = values.into_iter().zip(needs).filter(|(_, need)| **need == Need::Sent);
    (few, wanted.map(|(value, _)| value).collect())
}

/// What a statement with few parameters does with a column of [`ASKED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Sent,
    /// It must be null, and is not sent.
    Null,
    /// It is not sent, whatever it is.
    Nothing,
}

fn needs(sent: &[&str], unneeded: &[&str]) -> [Need; ASKED_COUNT] {
    ASKED.map(|(column, _)| match column {
        column if sent.contains(&column) => Need::Sent,
        column if unneeded.contains(&column) => Need::Nothing,
        _ => Need::Null,
    })
}

/// The values of a swap, in the order of [`ASKED`]. What the draft leaves open is null: the server stamps it.
pub(crate) fn values(swap: &Swap) -> [Value<'_>; ASKED_COUNT] {
    let record = swap.next.unstamped();
    let (grant, parts) = (record.state.grant(), Parts::of(&record.state));
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
        Value::Uuid(Some(grant.permit_id.get())),
        counted(grant.fence.get()),
        text(Some(&grant.owner)),
        Value::Moment(set(parts.since)),
        Value::Moment(parts.leased_at.and_then(set)),
        Value::Span(parts.lease),
        Value::Text(parts.reason),
        Value::Bytes(steps(record.steps())),
        Value::Text(outcome.map(|outcome| kind_text(outcome.kind()))),
        Value::Bytes(outcome.map(|outcome| Cow::Borrowed(&outcome.bytes()[..]))),
        text(outcome.and_then(|outcome| reference_id(outcome, PRIMARY))),
        text(outcome.and_then(|outcome| reference_id(outcome, SECONDARY))),
        text(outcome.and_then(Outcome::details_json)),
        Value::Moment(set(grant.granted_at)),
        Value::Moment(parts.probed_at),
        text(record.label.as_deref()),
        Value::Json(past_attempts_json(&record.past_attempts)),
        Value::Json(outcome.and_then(|outcome| references_json(outcome.references()))),
    ]
}

/// Swaps as the two arrays of a batch: those that expect no record, and those that expect a version.
pub(crate) fn swap_arrays(swaps: &[Swap]) -> [Array; 2] {
    let mut arrays = [Array::default(), Array::default()];
    for swap in swaps {
        let [absent, expected] = &mut arrays;
        let array = if swap.expected.is_none() { absent } else { expected };
        array.push_row(&values(swap), &PARAMETER_TYPES);
    }
    arrays
}

/// What the columns hold that only some states have.
#[derive(Default)]
struct Parts<'a> {
    since: Timestamp,
    leased_at: Option<Timestamp>,
    lease: Option<Duration>,
    reason: Option<Cow<'a, str>>,
    probed_at: Option<Timestamp>,
}

impl<'a> Parts<'a> {
    fn of(state: &'a State) -> Self {
        match state {
            State::Running(running) => Self {
                since: running.grant.granted_at,
                leased_at: Some(running.leased_at),
                lease: Some(running.lease),
                ..Self::default()
            },
            State::Done(done) => Self { since: done.settled_at, ..Self::default() },
            State::Released(released) => Self {
                since: released.settled_at,
                reason: Some(escaped(&released.reason)),
                ..Self::default()
            },
            State::Held(held) => Self {
                since: held.held_at,
                reason: Some(hold_text(&held.reason)),
                probed_at: held.probed_at,
                ..Self::default()
            },
        }
    }
}

fn kind_text(kind: &OutcomeKind) -> Cow<'_, str> {
    match kind {
        OutcomeKind::Success | OutcomeKind::Failure => Cow::Borrowed(kind.as_str()),
        OutcomeKind::Other(word) => escaped_but_not(KIND_WORDS, word),
    }
}

fn hold_text(reason: &HoldReason) -> Cow<'_, str> {
    match reason {
        HoldReason::Lapsed | HoldReason::Attempts => Cow::Borrowed(reason.as_str()),
        HoldReason::Unknown(words) => escaped_but_not(HOLD_WORDS, words),
    }
}

fn reference_id<'a>(outcome: &'a Outcome, kind: &str) -> Option<&'a str> {
    outcome.references().iter().find(|reference| &*reference.kind == kind).map(|reference| &*reference.id)
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
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!("ROW({row}.xmin, {row}.version, {row}.changed_at, {row}.grant_fence, {columns})")
}

/// The record that a row from the server holds under this id. An error names the row.
pub(crate) fn record(id: &RecordId, row: &[u8]) -> Result<Record> {
    read(row).map_err(|error| {
        let message = format!("{error}: SELECT * FROM semel_records WHERE id = '\\x{id}'");
        Error::new(error.kind(), message).caused_by(error)
    })
}

/// The transaction that wrote a row, if its record is done.
pub(crate) fn done_by(found: &Loaded, row: Option<&[u8]>) -> Option<u32> {
    let is_done = matches!(found, Ok(Some(record)) if matches!(record.state, State::Done(_)));
    row.filter(|_| is_done).and_then(|row| Fields::new(row).ok()?.transaction().ok())
}

fn read(row: &[u8]) -> Result<Record> {
    let mut fields = Fields::new(row)?;
    fields.transaction()?;
    let (version, changed_at) = (Version::new(fields.number()?), fields.moment()?);
    let grant_fence = fields.optional(Fields::number)?;
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
    let settled = StateColumns::read(&mut fields)?;
    let added = Some(AddedColumns::read(&mut fields)?);
    // Written for another grant, by the release before the one that wrote the row last: they say nothing of this one.
    let added = added.filter(|_| settled.fence.is_some() && settled.fence == grant_fence);
    Ok(Record {
        key,
        fingerprint,
        label: added.as_ref().map_or(Ok(None), AddedColumns::label)?,
        attempt,
        attempts_forgiven,
        past_attempts: added.as_ref().map_or(Ok(Vec::new()), AddedColumns::past_attempts)?,
        state: settled.state(state, added)?,
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

/// The columns that say where the work stands, as they are in the row.
struct StateColumns<'a> {
    permit_id: Option<PermitId>,
    fence: Option<u64>,
    owner: Option<&'a str>,
    since: Timestamp,
    leased_at: Option<Timestamp>,
    lease: Option<Duration>,
    reason: Option<&'a str>,
    steps: Vec<Step>,
    outcome_kind: Option<&'a str>,
    outcome: Option<&'a [u8]>,
    primary: Option<&'a str>,
    secondary: Option<&'a str>,
    details: Option<&'a str>,
}

/// The columns that schema 2 added.
#[derive(Clone, Copy)]
struct AddedColumns<'a> {
    granted_at: Option<Timestamp>,
    probed_at: Option<Timestamp>,
    label: Option<&'a str>,
    past_attempts: Option<&'a str>,
    references: Option<&'a str>,
}

impl<'a> AddedColumns<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Self> {
        Ok(Self {
            granted_at: fields.optional(Fields::moment)?,
            probed_at: fields.optional(Fields::moment)?,
            label: fields.optional(Fields::text)?,
            past_attempts: fields.optional(Fields::json)?,
            references: fields.optional(Fields::json)?,
        })
    }

    fn label(&self) -> Result<Option<Arc<str>>> {
        let Some(label) = self.label.map(unescaped) else { return Ok(None) };
        if label.len() > LABEL_BYTES_MAX {
            return Err(corrupt("its label is too long"));
        }
        Ok(Some(label.into()))
    }

    fn past_attempts(&self) -> Result<Vec<EndedAttempt>> {
        self.past_attempts.map_or(Ok(Vec::new()), past_attempts)
    }
}

impl<'a> StateColumns<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Self> {
        Ok(Self {
            permit_id: fields.optional(Fields::uuid)?.map(PermitId::new),
            fence: fields.optional(Fields::number)?,
            owner: fields.optional(Fields::text)?,
            since: fields.moment()?,
            leased_at: fields.optional(Fields::moment)?,
            lease: fields.optional(Fields::span)?,
            reason: fields.optional(Fields::text)?,
            steps: fields.optional(Fields::bytes)?.map_or(Ok(Vec::new()), read_steps)?,
            outcome_kind: fields.optional(Fields::text)?,
            outcome: fields.optional(Fields::bytes)?,
            primary: fields.optional(Fields::text)?,
            secondary: fields.optional(Fields::text)?,
            details: fields.optional(Fields::text)?,
        })
    }

    fn state(self, kind: StateKind, added: Option<AddedColumns<'_>>) -> Result<State> {
        let lacking = || corrupt("it lacks what its state needs");
        let grant = self.grant(kind, added).ok_or_else(lacking)?;
        let since = self.since;
        Ok(match kind {
            StateKind::Running => State::Running(Running {
                grant,
                leased_at: self.leased_at.ok_or_else(lacking)?,
                lease: self.lease.ok_or_else(lacking)?,
                steps: self.steps,
            }),
            StateKind::Done => State::Done(Done {
                grant,
                settled_at: since,
                outcome: self.outcome(added)?.ok_or_else(lacking)?,
            }),
            StateKind::Released => State::Released(Released {
                grant,
                settled_at: since,
                reason: self.reason.map(unescaped).ok_or_else(lacking)?.into(),
                steps: self.steps,
            }),
            StateKind::Held => State::Held(Held {
                grant,
                held_at: since,
                reason: self.reason.map(hold_reason).ok_or_else(lacking)?,
                probed_at: added.and_then(|added| added.probed_at),
                steps: self.steps,
            }),
        })
    }

    /// The grant that the state speaks of. 0.1 kept it whole only while it ran, and not at all once it was given up.
    fn grant(&self, kind: StateKind, added: Option<AddedColumns<'_>>) -> Option<Grant> {
        let is_kept = added.is_some() || matches!(kind, StateKind::Running | StateKind::Done);
        if !is_kept {
            return Some(Grant::forgotten(self.since));
        }
        let owner = match (self.owner, kind) {
            (None, StateKind::Running) => return None,
            (owner, _) => owner.map(unescaped).unwrap_or_default(),
        };
        Some(Grant {
            permit_id: self.permit_id?,
            owner: owner.into(),
            fence: Version::new(self.fence?),
            granted_at: added.and_then(|added| added.granted_at).unwrap_or(self.since),
        })
    }

    fn outcome(&self, added: Option<AddedColumns<'_>>) -> Result<Option<Outcome>> {
        let (Some(kind), Some(bytes)) = (self.outcome_kind.map(outcome_kind), self.outcome) else {
            return Ok(None);
        };
        let mut outcome = Outcome::new(kind, Bytes::copy_from_slice(bytes));
        if let Some(list) = added.and_then(|added| added.references) {
            for (kind, id) in references(list)? {
                outcome = outcome.reference(kind, id);
            }
        } else {
            let old = [(PRIMARY, self.primary), (SECONDARY, self.secondary)];
            for (kind, id) in old.into_iter().filter_map(|(kind, id)| Some((kind, id?))) {
                outcome = outcome.reference(kind, unescaped(id));
            }
        }
        if let Some(details) = self.details {
            outcome = outcome.details_text(&unescaped(details));
        }
        Ok(Some(outcome))
    }
}

fn outcome_kind(text: &str) -> OutcomeKind {
    if KIND_WORDS.contains(&text) {
        OutcomeKind::from_word(text)
    } else {
        OutcomeKind::Other(unescaped(text).into())
    }
}

fn hold_reason(text: &str) -> HoldReason {
    if HOLD_WORDS.contains(&text) {
        HoldReason::from_text(text)
    } else {
        HoldReason::Unknown(unescaped(text).into())
    }
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
