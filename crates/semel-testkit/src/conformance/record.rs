//! Promises that a record comes back as it went in, field by field and byte by byte.

use std::time::Duration;

use semel::machine::amend::step;
use semel::machine::claim::{Ask, claim};
use semel::machine::settle::{Resolution, complete, release, resolve};
use semel::machine::{Ruling, Write};
use semel::record::{Keep, Record, Step};
use semel::store::Store;
use semel::{Fingerprint, Key, Lapse, NAME_BYTES_MAX, Outcome, OutcomeKind, PART_BYTES_MAX, SCOPE_PARTS_MAX};

use super::stamp::stamped;
use super::trial::{Broken, LONG, Trial, at, promised, rewrite};
use crate::sample;

/// Every field comes back as it was, in all four states and with everything that a record can gather.
pub async fn every_field_round_trips(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let ask = Ask {
        fingerprint: Some(Fingerprint::of_parts(["the", "request"])),
        label: Some("POST /chärges".into()),
        owner: "wörker-7 / zone \u{1F980}".into(),
        lease: Duration::from_micros(61_000_001),
        retention: Duration::from_micros(86_400_000_003),
        lapse: Lapse::Hold,
        first_event: Some("evt-\u{4E8B}-1".into()),
        ..sample::ask(&sample::key("fields")?)
    };
    let running = stamped(trial, at(None, sample::running(&ask)?)).await?;
    let gathered = gather(trial, &ask, running).await?;

    let lapsed_at = gathered.changed_at.plus(ask.lease);
    let held = next(trial, &gathered, claim(Some(&gathered), &ask_again(&ask), lapsed_at)).await?;
    let release_it = Resolution::Release { reason: "it did not land, said Zoë".into() };
    let forgiven =
        next(trial, &held, resolve(Some(&held), sample::permit_id(), &release_it, lapsed_at)).await?;
    let again = ask_again(&ask);
    let second = next(trial, &forgiven, claim(Some(&forgiven), &again, forgiven.changed_at)).await?;
    let now = second.changed_at;
    let released = next(trial, &second, release(Some(&second), again.permit_id, "", now)).await?;
    let last = ask_again(&ask);
    let third = next(trial, &released, claim(Some(&released), &last, now)).await?;
    let outcome = rich_outcome(b"paid".to_vec());
    let done = next(trial, &third, complete(Some(&third), last.permit_id, &outcome, now)).await?;
    stamped(trial, rewrite(&done, Keep::Forever)?).await.map(drop)
}

/// Outcomes come back byte for byte: empty, binary, large, and with all that an outcome may say.
pub async fn an_outcome_is_replayed_byte_for_byte(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
    let large: Vec<u8> = all_bytes.iter().copied().cycle().take(1 << 20).collect();
    let outcomes = [
        Outcome::success(""),
        Outcome::failure("\0"),
        Outcome::success(all_bytes.clone()),
        Outcome::new(OutcomeKind::Other("übersprungen".into()), b"\xff\xfe".as_slice()),
        Outcome::success("only a reference").reference("primary", "pay_1"),
        Outcome::success("only the other").reference("secondary", ""),
        rich_outcome(all_bytes),
        rich_outcome(Vec::new()),
        Outcome::success(large),
    ];
    for outcome in outcomes {
        let ask = sample::ask(&sample::key("outcome")?);
        let done = stamped(trial, at(None, sample::done(&ask, &outcome)?)).await?;
        if done.outcome() != Some(&outcome) {
            return Err(Broken::new(
                "an outcome is replayed byte for byte",
                format!("{done:?} for {outcome:?}"),
            ));
        }
    }
    Ok(())
}

/// A key comes back whole: any script, any number of parts, up to the longest that there can be.
pub async fn a_key_comes_back_whole(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let name = sample::unique("Nämé \u{1F511} '\"\\%_ {} MiXeD case");
    let longest = format!("{name}{}", "n".repeat(NAME_BYTES_MAX - name.len()));
    let parts: Vec<_> = (0..SCOPE_PARTS_MAX).map(|at| at.to_string().repeat(PART_BYTES_MAX)).collect();
    let keys = [
        Key::new("bare", &name)?,
        Key::scoped(["Ünï", "租户", "a:b/c|d", "NULL"], "opération", &name)?,
        Key::scoped(parts, &"o".repeat(PART_BYTES_MAX), &longest)?,
    ];
    for key in keys {
        let record = stamped(trial, at(None, sample::running(&sample::ask(&key))?)).await?;
        if record.key != key {
            return Err(Broken::new("a key comes back whole", format!("another key than {}", key.id())));
        }
        stamped(trial, rewrite(&record, LONG)?).await?;
    }
    Ok(())
}

/// The record with steps, mismatches and duplicates, as far as they go.
async fn gather(trial: Trial<'_>, ask: &Ask, mut record: Record) -> Result<Record, Broken> {
    let steps: [(&str, Vec<u8>); 3] =
        [("charge", b"ch_1\0\xff".to_vec()), ("empty", Vec::new()), ("größer", vec![7; 4_096])];
    for (name, value) in steps {
        let noted = Step { name: name.into(), value: value.into() };
        record = next(trial, &record, step(Some(&record), ask.permit_id, &noted, record.changed_at)).await?;
    }
    for other in 0..10_u8 {
        let fingerprint = Some(Fingerprint::from_bytes([other; 32]));
        let mismatched = Ask { fingerprint, ..ask_again(ask) };
        record = next(trial, &record, claim(Some(&record), &mismatched, record.changed_at)).await?;
    }
    stamped(trial, rewrite(&record, LONG)?).await
}

async fn next<A>(trial: Trial<'_>, record: &Record, ruling: Ruling<A>) -> Result<Record, Broken> {
    let write: Write = sample::written(ruling.write)?;
    stamped(trial, at(Some(record.version), write)).await
}

fn ask_again(ask: &Ask) -> Ask {
    Ask { permit_id: sample::permit_id(), ..ask.clone() }
}

fn rich_outcome(bytes: Vec<u8>) -> Outcome {
    let details =
        serde_json::json!({ "amount": 12.5, "note": "ü\u{1F980}\u{0}", "lines": [1, null, {"a": []}] });
    Outcome::success(bytes).reference("primary", "pay_ü").reference("secondary", "inv 7").details(&details)
}

/// Keys that read the same when joined, and are split otherwise, have records of their own.
pub async fn keys_that_are_split_otherwise_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let u = sample::unique("split");
    let ab = format!("{u}ab");
    apart(
        store,
        &[
            Key::scoped([&*u, "ab"], "c", "d")?,
            Key::scoped([&*u], "ab", "cd")?,
            Key::scoped([&*u], "a", "bcd")?,
            Key::scoped([&*u, "a"], "bc", "d")?,
            Key::scoped([&*u, "a", "b"], "c", "d")?,
            Key::scoped([&*ab], "c", "d")?,
            Key::new(&ab, "cd")?,
            Key::new(&u, "abcd")?,
        ],
    )
    .await
}

/// The same operation and name under two tenants are two records.
pub async fn tenants_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let name = sample::unique("name");
    let (one, two) = (sample::unique("tenant"), sample::unique("tenant"));
    apart(
        store,
        &[
            Key::new("charge", &name)?,
            Key::scoped([&*one], "charge", &name)?,
            Key::scoped([&*two], "charge", &name)?,
            Key::scoped([&*one, &*two], "charge", &name)?,
            Key::scoped([&*two, &*one], "charge", &name)?,
        ],
    )
    .await
}

/// Names that a short digest, a case fold or a trimmed column takes for one have records of their own.
pub async fn names_that_look_alike_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let tenant = sample::unique("alike");
    let mut keys = Vec::new();
    for name in
        ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ", "case", "CASE", "a b", "a  b", "é", "e\u{301}"]
    {
        keys.push(Key::scoped([&*tenant], "charge", name)?);
    }
    apart(store, &keys).await
}

async fn apart(store: &dyn Store, keys: &[Key]) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut records = Vec::new();
    for key in keys {
        records.push(trial.put(key, LONG).await?);
    }
    for record in &records {
        let found = trial.load(record.key.id()).await?;
        promised!(found.as_ref() == Some(record), "different keys have records of their own", "{found:?}");
    }
    Ok(())
}
