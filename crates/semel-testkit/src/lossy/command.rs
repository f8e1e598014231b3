//! How each command is tried.

use std::convert::Infallible;
use std::time::Duration;

use semel::machine::claim::Ask;
use semel::record::{Keep, State};
use semel::store::{Filter, Scan, Swap, SwapReply};
use semel::{
    Claim, ClaimedAll, Decision, ErrorKind, OnceError, Outcome, RecordedOnce, ReleaseAnswer, Resolution,
    Resolved,
};

use super::trial::{Tested, Trial, key, patiently, run};
use crate::sample;

/// What a caller can ask of an engine or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Swap,
    Claim,
    Complete,
    Release,
    Renew,
    Step,
    RecordOnce,
    ResolveDone,
    ResolveRelease,
    ClaimAll,
    Get,
    Scan,
    Sweep,
}

impl Command {
    pub(super) const ALL: [Self; 13] = [
        Self::Swap,
        Self::Claim,
        Self::Complete,
        Self::Release,
        Self::Renew,
        Self::Step,
        Self::RecordOnce,
        Self::ResolveDone,
        Self::ResolveRelease,
        Self::ClaimAll,
        Self::Get,
        Self::Scan,
        Self::Sweep,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Swap => "swap",
            Self::Claim => "claim",
            Self::Complete => "complete",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Step => "step",
            Self::RecordOnce => "record_once",
            Self::ResolveDone => "resolve as done",
            Self::ResolveRelease => "resolve as released",
            Self::ClaimAll => "claim_all",
            Self::Get => "get",
            Self::Scan => "scan",
            Self::Sweep => "sweep",
        }
    }

    /// How many requests it takes when nothing goes wrong. Each of them can be the one that is lost.
    pub(super) fn requests(self) -> u64 {
        match self {
            Self::ResolveDone | Self::ResolveRelease => 2,
            Self::ClaimAll => 3,
            Self::Swap
            | Self::Claim
            | Self::Complete
            | Self::Release
            | Self::Renew
            | Self::Step
            | Self::RecordOnce
            | Self::Get
            | Self::Scan
            | Self::Sweep => 1,
        }
    }

    /// Whether it swaps, so that it can be seen whether that took.
    pub(super) fn swaps(self) -> bool {
        !matches!(self, Self::Get | Self::Scan | Self::Sweep)
    }

    /// Tries it once.
    pub(super) async fn test(self, trial: &Trial<'_>) -> Tested {
        match self {
            Self::Swap => swap(trial).await,
            Self::Claim => claim(trial).await,
            Self::Complete => complete(trial).await,
            Self::Release => release(trial).await,
            Self::Renew => renew(trial).await,
            Self::Step => step(trial).await,
            Self::RecordOnce => record_once(trial).await,
            Self::ResolveDone => resolve_done(trial).await,
            Self::ResolveRelease => resolve_release(trial).await,
            Self::ClaimAll => claim_all(trial).await,
            Self::Get => get(trial).await,
            Self::Scan => scan(trial).await,
            Self::Sweep => sweep(trial).await,
        }
    }
}

/// A swap of the store itself: if it took, nobody may be told that it did not.
async fn swap(trial: &Trial<'_>) -> Tested {
    let key = key("lost-swap")?;
    let ask = Ask { key: key.clone(), ..sample::ask(&key) };
    let write = sample::running(&ask).map_err(|error| error.to_string())?;
    trial.arm();
    let answer = trial.store.swap(vec![Swap { expected: None, next: write.next, keep: write.keep }]).await;
    let found = trial.record(&key).await?;
    match answer {
        Err(error) if error.kind() == ErrorKind::Unknown => {}
        Err(error) if error.kind() == ErrorKind::Unavailable && found.is_none() => {}
        Err(error) => return Err(format!("was told {error:?}, and the record is {found:?}")),
        Ok(answer) => {
            let told = answer.value.into_iter().next();
            let (Some(SwapReply::Swapped(record) | SwapReply::Stale(Some(record))), Some(found)) =
                (&told, &found)
            else {
                return Err(format!("was told {told:?}, and the record is {found:?}"));
            };
            if **record != *found {
                return Err(format!("was told {record:?}, and the record is {found:?}"));
            }
        }
    }
    let permit = run(patiently(|| trial.through.claim(Claim::new(&key).permit_id(ask.permit_id))).await)?;
    trial.runs_once(&key, ask.permit_id).await?;
    trial.ends_well(&permit).await
}

async fn claim(trial: &Trial<'_>) -> Tested {
    let (key, permit_id) = (key("lost-claim")?, sample::permit_id());
    let decision = trial.ask(&key, || trial.through.claim(Claim::new(&key).permit_id(permit_id))).await?;
    let permit = run(Ok(decision))?;
    trial.runs_once(&key, permit_id).await?;
    trial.ends_well(&permit).await
}

async fn complete(trial: &Trial<'_>) -> Tested {
    let key = key("lost-complete")?;
    let permit = trial.granted(&key).await?;
    let outcome = Outcome::success(*b"paid");
    trial.ask(&key, || permit.complete(outcome.clone())).await?;
    trial.replays(&key, &outcome).await
}

async fn release(trial: &Trial<'_>) -> Tested {
    let key = key("lost-release")?;
    let permit = trial.granted(&key).await?;
    match trial.ask(&key, || permit.release("later")).await? {
        ReleaseAnswer::Released | ReleaseAnswer::NotHolding => trial.is_free(&key, 2).await,
    }
}

async fn renew(trial: &Trial<'_>) -> Tested {
    let key = key("lost-renew")?;
    let permit = trial.granted(&key).await?;
    let granted = trial.record(&key).await?;
    trial.ask(&key, || permit.renew()).await?;
    let renewed = trial.record(&key).await?;
    if renewed.as_ref().map(|record| record.changed_at) <= granted.as_ref().map(|record| record.changed_at) {
        return Err(format!("the lease was not renewed: {renewed:?}"));
    }
    trial.runs_once(&key, permit.id()).await?;
    trial.ends_well(&permit).await
}

async fn step(trial: &Trial<'_>) -> Tested {
    let key = key("lost-step")?;
    let permit = trial.granted(&key).await?;
    let step = || async {
        let stored = permit.step("charge", || async { Ok::<_, Infallible>(7) }).await;
        stored.map_err(|error| match error {
            OnceError::Engine(error) => error,
            other @ (OnceError::Work(_) | OnceError::WorkBefore(_)) => {
                semel::Error::new(ErrorKind::Invalid, other.to_string())
            }
        })
    };
    trial.ask(&key, step).await?;
    let found = trial.record(&key).await?;
    let steps = found.as_ref().map_or(0, |record| record.steps().len());
    if steps != 1 {
        return Err(format!("{steps} steps are stored instead of one: {found:?}"));
    }
    trial.runs_once(&key, permit.id()).await?;
    trial.ends_well(&permit).await
}

async fn record_once(trial: &Trial<'_>) -> Tested {
    let (key, permit_id, outcome) = (key("lost-record")?, sample::permit_id(), Outcome::success(*b"seen"));
    let record = || trial.through.record_once(Claim::new(&key).permit_id(permit_id), outcome.clone());
    match trial.ask(&key, record).await? {
        RecordedOnce::Recorded(_) => trial.replays(&key, &outcome).await,
        other @ (RecordedOnce::Replay(_)
        | RecordedOnce::Busy(_)
        | RecordedOnce::Mismatch(_)
        | RecordedOnce::Held(_)) => Err(format!("was told {other:?} of its own outcome")),
    }
}

/// A record that is held, since its only attempt was given up.
async fn held(trial: &Trial<'_>) -> Tested<semel::Key> {
    let key = key("lost-resolve")?;
    let permit = trial.granted(&key).await?;
    patiently(|| permit.release("gave up")).await?;
    let decision = patiently(|| trial.through.claim(Claim::new(&key).attempts_max(1))).await?;
    if !matches!(decision, Decision::Held(_)) {
        return Err(format!("was told {decision:?} instead of held"));
    }
    Ok(key)
}

async fn resolve_done(trial: &Trial<'_>) -> Tested {
    let (key, outcome) = (held(trial).await?, Outcome::success(*b"it landed"));
    match trial.ask(&key, || trial.through.resolve(&key, Resolution::Done(outcome.clone()))).await? {
        // After a first try that took and a caller that asks anew, nothing is held any more.
        Resolved::Resolved | Resolved::NotHeld => trial.replays(&key, &outcome).await,
    }
}

async fn resolve_release(trial: &Trial<'_>) -> Tested {
    let key = held(trial).await?;
    let resolution = || Resolution::Release { reason: "it did not land".into() };
    match trial.ask(&key, || trial.through.resolve(&key, resolution())).await? {
        Resolved::Resolved | Resolved::NotHeld => trial.is_free(&key, 2).await,
    }
}

async fn claim_all(trial: &Trial<'_>) -> Tested {
    let keys = [key("lost-all")?, key("lost-all")?, key("lost-all")?];
    let permit_ids: Vec<_> = keys.iter().map(|_| sample::permit_id()).collect();
    let claims = || {
        let claim = |(key, permit_id)| Claim::new(key).permit_id(permit_id);
        keys.iter().zip(permit_ids.iter().copied()).map(claim).collect::<Vec<_>>()
    };
    // What was taken may have been given back, and that shows in the records: so none of them is watched for changes.
    let unasked = key("lost-all")?;
    let permits = match trial.ask(&unasked, || trial.through.claim_all(claims())).await? {
        ClaimedAll::Run(permits) => permits,
        refused @ ClaimedAll::Refused { .. } => return Err(format!("was told {refused:?} of its own keys")),
    };
    for (permit, permit_id) in permits.iter().zip(permit_ids) {
        let running = trial.record(permit.key()).await?;
        let mine = matches!(
            running.as_ref().map(|record| &record.state),
            Some(State::Running(running)) if running.permit_id == permit_id
        );
        if !mine {
            return Err(format!("one of all is not this caller's: {running:?}"));
        }
        trial.ends_well(permit).await?;
    }
    Ok(())
}

async fn get(trial: &Trial<'_>) -> Tested {
    let key = key("lost-get")?;
    let permit = trial.granted(&key).await?;
    trial.ends_well(&permit).await?;
    let stored = trial.record(&key).await?;
    let got = trial.ask(&key, || trial.through.get(&key)).await?;
    let same = got.as_ref().and_then(|record| record.outcome())
        == stored.as_ref().and_then(|record| record.outcome());
    if same { Ok(()) } else { Err(format!("got {got:?}, and the record is {stored:?}")) }
}

async fn scan(trial: &Trial<'_>) -> Tested {
    let key = key("lost-scan")?;
    let permit = trial.granted(&key).await?;
    let filter = Filter { name: Some(key.name().into()), ..Filter::default() };
    let (mut after, mut seen) = (None, 0);
    let mut is_first = true;
    // A page may end early, so the walk goes on to its end; only its first page is lost.
    for _ in 0..10_000 {
        let ask = || trial.through.scan(Scan { filter: filter.clone(), after, limit: 64 });
        let page = if is_first { trial.ask(&key, ask).await? } else { patiently(ask).await? };
        is_first = false;
        seen += page.records.iter().filter(|record| record.key == key).count();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if seen != 1 {
        return Err(format!("a walk through the store saw its record {seen} times"));
    }
    trial.ends_well(&permit).await
}

async fn sweep(trial: &Trial<'_>) -> Tested {
    let (gone, stays) = (key("lost-sweep")?, key("lost-sweep")?);
    let permit = trial.granted(&stays).await?;
    let write = sample::running(&sample::ask(&gone)).map_err(|error| error.to_string())?;
    let keep = Keep::For(Duration::from_millis(1));
    let put = trial.store_direct.swap(vec![Swap { expected: None, next: write.next, keep }]).await;
    let put_at = put.map_err(|error| format!("{error:?}"))?.now;
    while trial.store_direct.load(Vec::new()).await.map_err(|error| format!("{error:?}"))?.now
        <= put_at.plus(Duration::from_millis(1))
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    trial.ask(&stays, || trial.through.sweep(1_024)).await?;
    trial.runs_once(&stays, permit.id()).await?;
    trial.ends_well(&permit).await
}
