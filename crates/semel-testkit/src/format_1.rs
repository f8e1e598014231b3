//! What semel 0.1 wrote: the eleven records that every store's fixture of format 1 holds, and what must come of them.
//!
//! A store opens a copy of its fixture, and then [`read_all`], [`serve`] and, after it was opened again,
//! [`read_what_was_served`] must have nothing to say against it. `records.json` is what 0.1 itself read.
#![expect(clippy::wildcard_enum_match_arm, reason = "whatever else is decided is reported as it is")]

use std::fmt::Write as _;
use std::sync::Arc;

use semel::machine::offset::{self, Move, Moved};
use semel::record::{Record, State};
use semel::store::{Filter, Scan, Store};
use semel::{Claim, Decision, Fingerprint, Key, Lapse, Outcome, Semel};
use serde_json::{Value, json};

const RECORDS: &str = include_str!("format_1/records.json");
/// What [`serve`] completes the released key with.
const COMPLETED_WITH: &[u8] = b"third time";

/// What is wrong, in words; nothing if all is well.
pub type Verdict = Result<(), String>;

/// Reads all eleven records through an engine, one by one and in a page, and holds them against what 0.1 read.
pub async fn read_all(store: &Arc<dyn Store>) -> Verdict {
    let semel = engine(store)?;
    let expected: Vec<Value> = serde_json::from_str(RECORDS).map_err(words)?;
    for expected in &expected {
        let key = key_of(expected)?;
        let record = semel.get(&key).await.map_err(words)?.ok_or_else(|| format!("{key:?} is gone"))?;
        let (shown, expected) = (show(&record), as_seen(expected, &record));
        if shown != expected {
            return Err(format!("{shown:#} is served, and 0.1 read {expected:#}"));
        }
    }
    let all = Scan { filter: Filter::default(), after: None, limit: 100 };
    let page = semel.scan(all).await.map_err(words)?;
    let (records, damaged) = (page.records.len(), page.damaged.len());
    if (records, damaged) != (expected.len(), 0) {
        return Err(format!("a page has {records} records and {damaged} that cannot be read"));
    }
    Ok(())
}

/// Claims the keys as a caller of this release: replays, refuses, holds, and runs what was released to its end.
pub async fn serve(store: &Arc<dyn Store>) -> Verdict {
    let semel = engine(store)?;
    let of = |part: &str| Fingerprint::of_parts([part]);
    match semel.claim(claim("done")?.fingerprint(of("d"))).await.map_err(words)? {
        Decision::Replay(replay) if **replay.outcome().bytes() == *b"paid" => {}
        other => return Err(format!("`done` is replayed, but: {other:?}")),
    }
    match semel.claim(claim("done")?.fingerprint(of("x"))).await.map_err(words)? {
        Decision::Mismatch(_) => {}
        other => return Err(format!("`done` with another fingerprint is a mismatch, but: {other:?}")),
    }
    for (name, reason) in
        [("held-lapsed", "lapsed"), ("held-attempts", "attempts"), ("held-by-hand", "look at it")]
    {
        match semel.claim(claim(name)?).await.map_err(words)? {
            Decision::Held(held) if held.reason() == reason => {}
            other => return Err(format!("`{name}` stays held, but: {other:?}")),
        }
    }
    match semel.move_offset(&Key::scoped(["orders"], "offset", "topic/0").map_err(words)?, Move::Take).await {
        Ok(Moved::Moved(offset)) if offset.position.is_some_and(|at| at.to_string() == "41") => {}
        other => return Err(format!("the offset goes on from 41, but: {other:?}")),
    }
    run_released(&semel).await
}

async fn run_released(semel: &Semel) -> Verdict {
    let permit = match semel.claim(claim("released")?.owner("worker-4")).await.map_err(words)? {
        Decision::Run(permit) => permit,
        other => return Err(format!("`released` runs, but: {other:?}")),
    };
    let steps = permit.steps();
    let has_step = matches!(&*steps, [step] if &*step.name == "charge" && *step.value == *b"ch_2");
    if permit.attempt() != 3 || !has_step {
        return Err(format!("attempt 3 goes on behind its step, but: {permit:?} with {steps:?}"));
    }
    let outcome = Outcome::success(COMPLETED_WITH).reference("charge", "ch_3");
    permit.complete(outcome).await.map_err(words)
}

/// Reads what [`serve`] completed, after the store was opened again.
pub async fn read_what_was_served(store: &Arc<dyn Store>) -> Verdict {
    let semel = engine(store)?;
    let record = semel.get(&key("released")?).await.map_err(words)?.ok_or("`released` is gone")?;
    let outcome = record.outcome().ok_or_else(|| format!("it was completed, but: {record:?}"))?;
    let references: Vec<_> = outcome.references().iter().map(|it| (&*it.kind, &*it.id)).collect();
    let ended: Vec<_> = record.history().map(|attempt| (attempt.number, attempt.end.as_str())).collect();
    if **outcome.bytes() == *COMPLETED_WITH
        && references == [("charge", "ch_3")]
        && ended == [(2, "released"), (3, "completed")]
    {
        return Ok(());
    }
    Err(format!("{outcome:?} with {references:?} after {ended:?}"))
}

fn engine(store: &Arc<dyn Store>) -> Result<Semel, String> {
    Semel::builder_shared(Arc::clone(store)).no_sweep().build().map_err(words)
}

fn key(name: &str) -> Result<Key, String> {
    Key::scoped(["acme"], "fixture", name).map_err(words)
}

fn claim(name: &str) -> Result<Claim, String> {
    key(name).map(|key| Claim::new(&key))
}

fn key_of(expected: &Value) -> Result<Key, String> {
    let text = |name: &str| expected.get(name).and_then(Value::as_str).ok_or("a record without a key");
    let scope = expected.get("scope").and_then(Value::as_array).ok_or("a record without a scope")?;
    Key::scoped(scope.iter().filter_map(Value::as_str), text("operation")?, text("name")?).map_err(words)
}

/// What 0.1 read, as this release shows it: a run that lapsed under `hold` is held.
fn as_seen(expected: &Value, record: &Record) -> Value {
    let mut expected = expected.clone();
    if let (State::Held(_), Some(fields)) = (&record.state, expected.as_object_mut())
        && fields.get("state") == Some(&json!("running"))
        && record.lapse == Lapse::Hold
    {
        fields.insert("state".to_owned(), json!("held"));
        fields.insert("reason".to_owned(), json!("lapsed"));
        for unsaid in ["owner", "permit_id", "lease_ms"] {
            fields.insert(unsaid.to_owned(), Value::Null);
        }
    }
    expected
}

/// A record in the words of `records.json`.
fn show(record: &Record) -> Value {
    let steps: Vec<_> =
        record.steps().iter().map(|step| json!({"name": step.name, "value": text(&step.value)})).collect();
    let others: Vec<_> = record.mismatches.fingerprints.iter().map(|other| hex(other.as_bytes())).collect();
    let mut shown = json!({
        "scope": record.key.scope().collect::<Vec<_>>(),
        "operation": record.key.operation(),
        "name": record.key.name(),
        "id": record.key.id().to_string(),
        "state": record.state.kind().as_str(),
        "attempt": record.attempt,
        "pardoned": record.attempts_forgiven,
        "lapse": match record.lapse { Lapse::Rerun => "rerun", Lapse::Hold => "hold" },
        "retention_seconds": record.retention.as_secs(),
        "fingerprint": record.fingerprint.map(|fingerprint| hex(fingerprint.as_bytes())),
        "first_event": record.first_event.as_deref(),
        "steps": steps,
        "duplicates": record.duplicates.count,
        "mismatches": record.mismatches.count,
        "mismatched_fingerprints": others,
    });
    let Some(fields) = shown.as_object_mut() else { return shown };
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    for name in ["owner", "permit_id", "lease_ms", "reason", "outcome"] {
        put(name, Value::Null);
    }
    match &record.state {
        State::Running(running) => {
            put("owner", json!(&*running.grant.owner));
            put("permit_id", json!(u64::try_from(running.grant.permit_id.get()).ok()));
            put("lease_ms", json!(u64::try_from(running.lease.as_millis()).ok()));
        }
        State::Done(done) => {
            put("permit_id", json!(u64::try_from(done.grant.permit_id.get()).ok()));
            put("outcome", show_outcome(&done.outcome));
        }
        State::Released(released) => put("reason", json!(released.reason)),
        State::Held(held) => put("reason", json!(held.reason.as_str())),
    }
    if let Some(offset) = offset::read(record) {
        let position = offset.position.map(|position| position.to_string());
        let (last_event, epoch, lag) = (offset.last_event, offset.epoch, offset.lag);
        put("offset", json!({"position": position, "last_event": last_event, "epoch": epoch, "lag": lag}));
    }
    shown
}

fn show_outcome(outcome: &Outcome) -> Value {
    let reference =
        |kind: &str| outcome.references().iter().find(|it| &*it.kind == kind).map(|it| it.id.to_string());
    json!({
        "kind": outcome.kind().as_str(),
        "bytes": text(outcome.bytes()),
        "primary_reference": reference("primary"),
        "secondary_reference": reference("secondary"),
        "details": outcome.details_json(),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written into it.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
