//! Promises that each part of a record comes back unchanged in every state, however it is asked for.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{
    AttemptEnd, Done, Draft, EndedAttempt, Grant, HISTORY_MAX, Held, HoldReason, LABEL_BYTES_MAX, Record,
    Released, State, Step, Version,
};
use semel::store::{Filter, Scan, Store, Swap, SwapReply};
use semel::{Outcome, OutcomeKind};

use super::stamp::stamped;
use super::trial::{Broken, LONG, Trial, difference, promised, rewrite};
use crate::sample;

/// A moment that is over, which no store may take for one that is open.
const PAST: Timestamp = Timestamp::from_micros(1_700_000_000_123_457);

/// A label comes back in every state: any script, up to the longest, and none where there is none.
pub async fn a_label_comes_back_in_every_state(store: &dyn Store) -> Result<(), Broken> {
    let longest = "L".repeat(LABEL_BYTES_MAX);
    for label in [None, Some("POST /chärges \u{1F980}"), Some(&*longest)] {
        for mut record in in_every_state(&grant()?)? {
            record.label = label.map(Arc::from);
            comes_back(store, record).await?;
        }
    }
    Ok(())
}

/// Permit id, owner, fence and moment of the grant come back in every state, and later writes leave them alone.
pub async fn a_grant_comes_back_in_every_state(store: &dyn Store) -> Result<(), Broken> {
    let plain = grant()?;
    let grants = [
        Grant { owner: "wörker-7 / zone \u{1F980}".into(), ..plain.clone() },
        Grant { owner: "".into(), ..plain.clone() },
        Grant { permit_id: semel::record::PermitId::new(u128::MAX), ..plain },
    ];
    for grant in &grants {
        for record in in_every_state(grant)? {
            let written = comes_back(store, record).await?;
            let rewritten = stamped(Trial::of(store), rewrite(&written, LONG)?).await?;
            promised!(
                rewritten.state.grant() == grant,
                "a grant lasts as long as its record",
                "{:?} instead of {grant:?}",
                rewritten.state.grant()
            );
        }
    }
    Ok(())
}

/// A grant whose moment or fence a draft leaves open is stamped in every state, each where it is open.
pub async fn an_open_grant_is_stamped_in_every_state(store: &dyn Store) -> Result<(), Broken> {
    let given = grant()?;
    let (no_moment, no_fence) = (Timestamp::from_micros(0), Version::new(0));
    let grants = [
        Grant { granted_at: no_moment, fence: no_fence, ..given.clone() },
        Grant { granted_at: no_moment, ..given.clone() },
        Grant { fence: no_fence, ..given.clone() },
    ];
    for grant in &grants {
        for record in in_every_state(grant)? {
            let stored = comes_back(store, record).await?;
            let moment = if grant.granted_at == no_moment { stored.changed_at } else { given.granted_at };
            let fence = if grant.fence == no_fence { stored.version } else { given.fence };
            let expected = Grant { granted_at: moment, fence, ..given.clone() };
            promised!(
                *stored.state.grant() == expected,
                "what a grant leaves open is stamped, and nothing else of it",
                "{:?} instead of {expected:?}",
                stored.state.grant()
            );
        }
    }
    Ok(())
}

/// As many past attempts as a record may have come back in every state, in their order, with every part.
pub async fn past_attempts_come_back_in_every_state(store: &dyn Store) -> Result<(), Broken> {
    let ends = [AttemptEnd::Released, AttemptEnd::Lapsed, AttemptEnd::Held, AttemptEnd::Completed];
    let reasons = ["", "card declined", "größer \u{1F980}\nline two"];
    let attempt = |(at, end): (usize, AttemptEnd)| {
        let number = u32::try_from(at).unwrap_or(u32::MAX) + 34;
        let from = Timestamp::from_micros(PAST.as_micros() + u64::from(number) * 1_000_003);
        EndedAttempt {
            number,
            owner: ["worker-1", "", "wörker-2"].into_iter().cycle().nth(at).unwrap_or_default().into(),
            from,
            until: Timestamp::from_micros(from.as_micros() + 500_001),
            end,
            reason: reasons.into_iter().cycle().nth(at).unwrap_or_default().into(),
        }
    };
    let all: Vec<_> = ends.into_iter().cycle().take(HISTORY_MAX - 1).enumerate().map(attempt).collect();
    for count in [0, 1, all.len()] {
        for mut record in in_every_state(&grant()?)? {
            record.attempt = 41;
            record.past_attempts = all.iter().take(count).cloned().collect();
            comes_back(store, record).await?;
        }
    }
    Ok(())
}

/// References come back with their kinds and in their order, also where a kind or a whole reference occurs twice.
pub async fn references_come_back_in_their_order(store: &dyn Store) -> Result<(), Broken> {
    let references = [
        ("secondary", "inv 7"),
        ("charge", "ch_2"),
        ("primary", "pay_1"),
        ("charge", "ch_1"),
        ("charge", "ch_2"),
        ("größe", "\u{1F980}"),
        ("", "no kind"),
        ("no id", ""),
    ];
    for count in 0..=references.len() {
        let base = Outcome::success("referred to");
        let outcome =
            references.iter().take(count).fold(base, |outcome, (kind, id)| outcome.reference(*kind, *id));
        let mut record = draft()?;
        record.state = done(&grant()?, outcome);
        comes_back(store, record).await?;
    }
    Ok(())
}

/// A kind of outcome or a reason to hold that is the caller's own stays that, also where it reads like one of semel's.
pub async fn words_of_the_callers_own_stay_its_own(store: &dyn Store) -> Result<(), Broken> {
    let grant = grant()?;
    for word in ["success", "failure", "Success", "skipped", ""] {
        let mut record = draft()?;
        record.state = done(&grant, Outcome::new(OutcomeKind::Other(word.into()), "1"));
        comes_back(store, record).await?;
    }
    let own = ["lapsed", "attempts", "timed out", ""].map(|reason| HoldReason::Unknown(reason.into()));
    for reason in own.into_iter().chain([HoldReason::Lapsed, HoldReason::Attempts]) {
        let mut record = draft()?;
        record.state = held(&grant, reason, None);
        comes_back(store, record).await?;
    }
    Ok(())
}

/// When a held record was last probed comes back, and that it never was.
pub async fn the_moment_of_a_probe_comes_back(store: &dyn Store) -> Result<(), Broken> {
    for probed_at in [None, Some(PAST), Some(Timestamp::from_micros(1))] {
        for reason in [HoldReason::Lapsed, HoldReason::Unknown("timed out".into())] {
            let mut record = draft()?;
            record.state = held(&grant()?, reason, probed_at);
            comes_back(store, record).await?;
        }
    }
    Ok(())
}

/// Writes the record, and compares it with what each way to read it hands back: the swap itself, a load, a stale swap and a
/// scan.
async fn comes_back(store: &dyn Store, record: Record) -> Result<Record, Broken> {
    let trial = Trial::of(store);
    let swap = Swap { expected: None, next: Draft::from_unstamped(record), keep: LONG };
    let written = stamped(trial, swap.clone()).await?;
    let lost = match trial.swap(swap).await? {
        SwapReply::Stale(found) => found,
        reply @ (SwapReply::Swapped(_) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_)) => {
            return Err(Broken::new("a swap of what is there is stale", format!("{reply:?}")));
        }
    };
    is_as_written("stale hands back what was written", lost.as_deref(), &written)?;
    let shown = only_one_named(store, &written).await?;
    is_as_written("a scan shows what was written", shown.as_deref(), &written)?;
    Ok(written)
}

fn is_as_written(promised: &'static str, seen: Option<&Record>, written: &Record) -> Result<(), Broken> {
    let seen = seen.ok_or_else(|| Broken::new(promised, "nothing"))?;
    promised!(seen == written, promised, "{}", difference(seen, written));
    Ok(())
}

/// The record that a scan shows under the name, which no other has.
async fn only_one_named(store: &dyn Store, record: &Record) -> Result<Option<Arc<Record>>, Broken> {
    let mut scan = Scan { limit: 8, ..Scan::default() };
    scan.filter = Filter {
        scope: record.key.scope().map(Into::into).collect(),
        operation: Some(record.key.operation().into()),
        name: Some(record.key.name().into()),
        ..Filter::default()
    };
    loop {
        let mut page = store.scan(scan.clone()).await?.value;
        match (page.records.pop(), page.next) {
            (None, Some(next)) => scan.after = Some(next),
            (shown, _) => return Ok(shown),
        }
    }
}

/// A grant of which nothing is open.
fn grant() -> Result<Grant, Broken> {
    let running = draft()?;
    Ok(Grant { granted_at: PAST, fence: Version::new(77), ..running.state.grant().clone() })
}

/// What a first claim of a key like no other writes.
fn draft() -> Result<Record, Broken> {
    Ok(sample::running(&sample::ask(&sample::key("fields")?))?.next.unstamped().clone())
}

/// A record in each of the four states, each with a key of its own, under this grant.
fn in_every_state(grant: &Grant) -> Result<Vec<Record>, Broken> {
    let settled_at = Timestamp::from_micros(0);
    let released = Released { grant: grant.clone(), settled_at, reason: "later".into(), steps: steps() };
    let settled = [
        done(grant, Outcome::success("1")),
        State::Released(released),
        held(grant, HoldReason::Lapsed, Some(PAST)),
    ];
    let mut running = draft()?;
    if let State::Running(state) = &mut running.state {
        (state.grant, state.steps) = (grant.clone(), steps());
    }
    let mut records = vec![running];
    for state in settled {
        records.push(Record { state, ..draft()? });
    }
    Ok(records)
}

fn done(grant: &Grant, outcome: Outcome) -> State {
    State::Done(Done { grant: grant.clone(), settled_at: Timestamp::from_micros(0), outcome })
}

fn held(grant: &Grant, reason: HoldReason, probed_at: Option<Timestamp>) -> State {
    let held_at = Timestamp::from_micros(0);
    State::Held(Held { grant: grant.clone(), held_at, reason, probed_at, steps: steps() })
}

fn steps() -> Vec<Step> {
    vec![Step { name: "charge".into(), value: (*b"ch_1").into() }]
}
