//! What must not be, between what callers were told of a key and the record that is there.
//!
//! The leases of the load outlive any test, so nobody may take over a run that was not released.

use semel::record::{Record, State};

use super::account::{Account, Ending, Grant};
use super::losses::Wrong;

/// All that is wrong with a key.
pub(super) fn judge(account: &Account, found: Option<&Record>) -> Vec<(Wrong, String)> {
    let mut wrong = Vec::new();
    wrong.extend(account.odd.iter().map(|what| (Wrong::Lost, what.clone())));
    grants(account, &mut wrong);
    outcomes(account, found, &mut wrong);
    if account.outcomes().next().is_none() {
        last_run(account, found, &mut wrong);
    }
    wrong
}

/// No two callers were told to run at the same time.
fn grants(account: &Account, wrong: &mut Vec<(Wrong, String)>) {
    let mut grants = account.grants.clone();
    grants.sort_by_key(|grant| (grant.attempt, grant.fence));
    for pair in grants.windows(2) {
        let [before, after] = pair else { continue };
        let what = if before.permit_id == after.permit_id {
            (before != after).then(|| format!("one permit has two runs: {before:?} and {after:?}"))
        } else if before.attempt == after.attempt {
            Some(format!("two callers were granted attempt {}", after.attempt))
        } else if before.fence >= after.fence {
            Some(format!("the fence went from {} to {}", before.fence, after.fence))
        } else if !account.may_have_ended(before.permit_id, &Ending::Released) {
            Some(format!("attempt {} was granted while {} held its lease", after.attempt, before.attempt))
        } else {
            None
        };
        wrong.extend(what.map(|what| (Wrong::Doubled, what)));
    }
}

/// What was acknowledged as the outcome, or replayed as one, is the outcome.
fn outcomes(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let stored = found.and_then(Record::outcome);
    for outcome in account.outcomes().chain(&account.replayed) {
        if stored != Some(outcome) {
            let state = found.map(|record| record.state.word().as_str());
            wrong.push((Wrong::Lost, format!("an outcome that was told is gone: the record is {state:?}")));
        }
    }
}

/// What the last run that anybody heard of has come to.
fn last_run(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let Some(last) = account.last_grant() else { return unheard(account, found, wrong) };
    let what = match found {
        None => Some("a run was granted and there is no record".to_owned()),
        Some(record) if record.attempt < last.attempt => {
            Some(format!("attempt {} was granted and the record is at {}", last.attempt, record.attempt))
        }
        Some(record) if record.attempt > last.attempt => {
            if !account.may_have_ended(last.permit_id, &Ending::Released) {
                wrong.push((Wrong::Doubled, format!("a run came after attempt {} held", last.attempt)));
            }
            return unheard(account, found, wrong);
        }
        Some(record) => same_run(account, last, &record.state),
    };
    wrong.extend(what.map(|what| (Wrong::Lost, what)));
}

/// What is wrong with the state of the run that was granted.
fn same_run(account: &Account, last: &Grant, state: &State) -> Option<String> {
    let is_wrong = match state {
        State::Running(running) => {
            running.permit_id != last.permit_id
                || running.fence.get() != last.fence
                || account.has_ended(last.permit_id, &Ending::Released)
        }
        State::Done(done) => {
            done.permit_id != last.permit_id
                || !account.may_have_ended(last.permit_id, &Ending::Done(done.outcome.clone()))
        }
        State::Released(_) => !account.may_have_ended(last.permit_id, &Ending::Released),
        State::Held(_) => true,
    };
    is_wrong.then(|| format!("attempt {} is {}, and nobody was told so", last.attempt, state.word().as_str()))
}

/// A run that nobody heard of must be one that somebody asked for, who can ask for it again.
fn unheard(account: &Account, found: Option<&Record>, wrong: &mut Vec<(Wrong, String)>) {
    let Some(record) = found else { return };
    let known = match &record.state {
        State::Running(running) => account.asked.contains(&running.permit_id),
        State::Done(done) => account.may_have_ended(done.permit_id, &Ending::Done(done.outcome.clone())),
        State::Released(_) => true,
        State::Held(_) => false,
    };
    if !known {
        let state = record.state.word().as_str();
        wrong.push((Wrong::Wedged, format!("it is {state} under a permit that nobody has")));
    }
}
