//! What must hold: after every write of the store, at every answer, and in every state.

use semel::Lapse;
use semel::record::{Done, Record, Running, State as At};

use super::book::{Book, outcome_of, permit_of, tick};
use super::state::{Answer, Ask, Doing, Page, Request, State};

/// The promise that was broken.
pub(super) type Broken = &'static str;

/// Checks one write of the store against what was there before it.
pub(super) fn check_write(
    book: &Book,
    before: &State,
    after: Page,
    request: Request,
    lapse: Lapse,
) -> Result<(), Broken> {
    let found = book.record(before.record);
    let old = found.filter(|_| book.is_live(before.record, before.now));
    let Some(new) = book.record(after) else { return Ok(()) };
    // Past its life and not yet swept or taken over, a run is still its own permit's to settle.
    if settles(request.ask)
        && found.and_then(running).is_none_or(|old| permit_of(old.grant.permit_id) != request.permit)
    {
        return Err("a stale permit changed the record");
    }
    if let Some(old) = old.and_then(done) {
        return if done(new) == Some(old) { Ok(()) } else { Err("a done record changed") };
    }
    match (&new.state, found.and_then(running)) {
        (At::Running(new_run), _) if new_run.grant.fence == new.version => {
            check_grant(before, old, new_run, lapse)
        }
        (At::Running(new), Some(old))
            if new.grant.fence == old.grant.fence && new.grant.permit_id == old.grant.permit_id =>
        {
            Ok(())
        }
        (At::Running(_), _) => Err("a permit changed hands without a new fence"),
        (At::Done(_) | At::Released(_), Some(old)) if resolves(request.ask) => {
            if before.now < tick(old.lease_until()) {
                return Err("a run whose lease is good was resolved");
            }
            Ok(())
        }
        (At::Done(done), Some(old))
            if done.grant.fence != old.grant.fence || done.grant.permit_id != old.grant.permit_id =>
        {
            Err("an outcome was stored under a fence that its run never had")
        }
        (At::Done(_) | At::Released(_) | At::Held(_), _) => Ok(()),
    }
}

fn check_grant(before: &State, old: Option<&Record>, new: &Running, lapse: Lapse) -> Result<(), Broken> {
    if new.grant.fence.get() <= u64::from(before.fence_max) {
        return Err("a fence did not grow");
    }
    let Some(old) = old else { return Ok(()) };
    if let At::Running(old) = &old.state
        && old.grant.permit_id != new.grant.permit_id
        && before.now < tick(old.lease_until())
    {
        return Err("a run was granted over a good lease");
    }
    let undecided = matches!(old.state, At::Running(_) | At::Held(_));
    if lapse == Lapse::Hold && undecided {
        return Err("a second run started under hold and nobody had resolved it");
    }
    Ok(())
}

/// Checks what a caller is told against the record that it is told from.
pub(super) fn check_answer(
    book: &Book,
    state: &State,
    permit: u8,
    answer: Answer,
    record: Page,
    asked_at: u8,
) -> Result<(), Broken> {
    let record = book.record(record);
    match answer {
        Answer::Run => match record.and_then(running) {
            Some(run) if permit_of(run.grant.permit_id) == permit => Ok(()),
            _ => Err("a caller was told to run without a run of its own"),
        },
        Answer::Replay | Answer::Done => {
            let Some(done) = record.and_then(done) else { return Err("a replay came from no done record") };
            let by = permit_of(done.grant.permit_id);
            if done.outcome != outcome_of(by) {
                return Err("an outcome was not replayed byte for byte");
            }
            match state.acknowledged {
                Some(known) if (known.since..known.until).contains(&asked_at) && by != known.permit => {
                    Err("a replay differs from the outcome that was acknowledged")
                }
                _ if answer == Answer::Done && by != permit => Err("another's outcome was acknowledged"),
                _ => Ok(()),
            }
        }
        Answer::Busy
        | Answer::Mismatch
        | Answer::Held
        | Answer::Released
        | Answer::Renewed
        | Answer::Resolved
        | Answer::Lost => Ok(()),
    }
}

/// Checks a state by itself.
pub(super) fn check_state(book: &Book, state: &State) -> Result<(), Broken> {
    check_holds(book, state)?;
    let Some(known) = state.acknowledged else { return Ok(()) };
    let Some(done) = book.record(state.record).and_then(done) else {
        return Err("an acknowledged outcome is gone before its retention ended");
    };
    if done.outcome != outcome_of(known.permit) {
        return Err("an acknowledged outcome changed");
    }
    // Its run wrote before it completed, and no run with an older fence may write over that.
    if state.accepted.by != known.permit {
        return Err("the fence-checking resource took another write than that of the acknowledged run");
    }
    Ok(())
}

/// Whoever was told to run, and whose lease is good by the store's clock, holds the record, alone.
fn check_holds(book: &Book, state: &State) -> Result<(), Broken> {
    let current = book.record(state.record).and_then(running);
    let mut holders = 0;
    for caller in &state.callers {
        let Doing::Running { record, .. } = caller.doing else { continue };
        let Some(told) = book.record(record).and_then(running) else { continue };
        if state.now >= tick(told.lease_until()) {
            continue;
        }
        holders += 1;
        if !current.is_some_and(|now| {
            now.grant.permit_id == told.grant.permit_id && now.grant.fence == told.grant.fence
        }) {
            return Err("a caller within its lease does not hold the record");
        }
    }
    if holders > 1 { Err("two holds of one key overlap") } else { Ok(()) }
}

fn settles(ask: Ask) -> bool {
    matches!(ask, Ask::Complete | Ask::Release | Ask::Renew)
}

pub(super) fn running(record: &Record) -> Option<&Running> {
    match &record.state {
        At::Running(running) => Some(running),
        At::Done(_) | At::Released(_) | At::Held(_) => None,
    }
}

pub(super) fn done(record: &Record) -> Option<&Done> {
    match &record.state {
        At::Done(done) => Some(done),
        At::Running(_) | At::Released(_) | At::Held(_) => None,
    }
}

fn resolves(ask: Ask) -> bool {
    matches!(ask, Ask::ResolveDone | Ask::ResolveRelease)
}
