//! The promises, held against what was witnessed at the store and what processes say they were told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use semel::record::{PermitId, Record, State};
use semel::{Lapse, Outcome, RecordId};

/// What processes say they were told.
#[derive(Clone, Default)]
pub(super) struct Testimony(Arc<Mutex<Told>>);

#[derive(Clone, Default)]
pub(super) struct Told {
    grants: Vec<(RecordId, PermitId, u64)>,
    completions: Vec<(RecordId, PermitId, Outcome)>,
    replays: Vec<(RecordId, Outcome, Option<PermitId>)>,
    pub(super) crashes: u64,
    pub(super) lost: u64,
}

impl Testimony {
    fn add(&self, add: impl FnOnce(&mut Told)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn granted(&self, id: RecordId, permit_id: PermitId, fence: u64) {
        self.add(|told| told.grants.push((id, permit_id, fence)));
    }

    pub(super) fn completed(&self, id: RecordId, permit_id: PermitId, outcome: Outcome) {
        self.add(|told| told.completions.push((id, permit_id, outcome)));
    }

    pub(super) fn replayed(&self, id: RecordId, outcome: &Outcome, record: &Record) {
        let by = match &record.state {
            State::Done(done) => Some(done.grant.permit_id),
            State::Running(_) | State::Released(_) | State::Held(_) => None,
        };
        self.add(|told| told.replays.push((id, outcome.clone(), by)));
    }

    pub(super) fn crashed(&self) {
        self.add(|told| told.crashes += 1);
    }

    pub(super) fn lost(&self) {
        self.add(|told| told.lost += 1);
    }

    pub(super) fn told(&self) -> Told {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Told {
    pub(super) fn runs(&self) -> u64 {
        self.grants.len() as u64
    }

    pub(super) fn replays(&self) -> u64 {
        self.replays.len() as u64
    }
}

/// What must not have happened.
pub(super) fn judge(written: &[Record], told: &Told, accepted: &BTreeMap<RecordId, Vec<u64>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut by_key: BTreeMap<RecordId, Vec<&Record>> = BTreeMap::new();
    for record in written {
        by_key.entry(record.key.id()).or_default().push(record);
    }
    for records in by_key.values() {
        for pair in records.windows(2) {
            if let [before, after] = pair {
                succession(before, after, &mut found);
            }
        }
    }
    grants(written, told, &mut found);
    outcomes(written, told, &mut found);
    for (id, fences) in accepted {
        if !fences.is_sorted() {
            found.push(format!("{}: an older run wrote after a newer one: {fences:?}", id.short()));
        }
    }
    found
}

/// What one write may follow another, on the store's own clock.
fn succession(before: &Record, after: &Record, found: &mut Vec<String>) {
    let mut say = |what: &str| found.push(format!("{}: {what}", after.key.id().short()));
    if after.version <= before.version {
        say("a version did not grow");
    }
    if after.changed_at < before.changed_at {
        say("the store's clock ran backwards");
    }
    if !before.is_live(after.changed_at) {
        return;
    }
    match (&before.state, &after.state) {
        (State::Running(old), State::Running(new)) if old.grant.permit_id != new.grant.permit_id => {
            if old.lease_is_good(after.changed_at) {
                say("two holds of one key overlap");
            }
            if before.lapse == Lapse::Hold {
                say("a second run began under `hold` without anybody's decision");
            }
            if new.grant.fence <= old.grant.fence {
                say("a fence did not grow");
            }
        }
        (State::Running(old), State::Running(new))
            if old.grant.fence != new.grant.fence && old.lease_is_good(after.changed_at) =>
        {
            say("one permit has two fences");
        }
        (State::Done(old), State::Done(new)) if old.outcome != new.outcome => {
            say("an outcome changed");
        }
        (State::Done(_), State::Running(_) | State::Released(_) | State::Held(_)) => {
            say("a done record came back to life before its retention ended");
        }
        (State::Held(_), State::Running(_)) => say("a held record ran without anybody's decision"),
        _ => {}
    }
}

/// Whoever was told to run must have been written down as running, and no fence is anybody else's.
fn grants(written: &[Record], told: &Told, found: &mut Vec<String>) {
    let granted: BTreeSet<(RecordId, u128, u64)> = written
        .iter()
        .filter_map(|record| match &record.state {
            State::Running(running) => {
                Some((record.key.id(), running.grant.permit_id.get(), running.grant.fence.get()))
            }
            State::Done(_) | State::Released(_) | State::Held(_) => None,
        })
        .collect();
    let mut holders: BTreeMap<(RecordId, u64), PermitId> = BTreeMap::new();
    for (id, permit_id, fence) in &told.grants {
        if !granted.contains(&(*id, permit_id.get(), *fence)) {
            found.push(format!("{}: a caller was told to run and the store never granted it", id.short()));
        }
        if holders.insert((*id, *fence), *permit_id).is_some_and(|other| other != *permit_id) {
            found.push(format!("{}: two callers were granted fence {fence}", id.short()));
        }
    }
}

/// What was acknowledged must have been written, and what was replayed must be what was written.
fn outcomes(written: &[Record], told: &Told, found: &mut Vec<String>) {
    let done = |id: &RecordId, permit_id: PermitId, outcome: &Outcome| {
        written.iter().filter(|record| record.key.id() == *id).any(|record| match &record.state {
            State::Done(done) => done.grant.permit_id == permit_id && done.outcome == *outcome,
            State::Running(_) | State::Released(_) | State::Held(_) => false,
        })
    };
    for (id, permit_id, outcome) in &told.completions {
        if !done(id, *permit_id, outcome) {
            found.push(format!("{}: an acknowledged outcome was never stored", id.short()));
        }
    }
    for (id, outcome, by) in &told.replays {
        if !by.is_some_and(|permit_id| done(id, permit_id, outcome)) {
            found.push(format!("{}: a replay is not what was stored", id.short()));
        }
    }
}

/// What came of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// A digest of every event in order: the same seed gives the same one.
    pub trace_hash: [u8; 32],
    /// How many events there were.
    pub events: u64,
    /// How many runs were granted.
    pub runs: u64,
    /// How many of them were beyond a record's first attempt.
    pub reruns: u64,
    /// How many claims were answered with a stored outcome.
    pub replays: u64,
    /// How many processes crashed in the middle of a run.
    pub crashes: u64,
    /// How many permits turned out to be lost.
    pub lost: u64,
    /// How many writes the resource refused for their fence.
    pub fenced_off: u64,
    /// What must not have happened.
    pub violations: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} events, {} runs ({} again), {} replays, {} crashes, {} lost, {} fenced off, {} violations",
            self.seed,
            self.events,
            self.runs,
            self.reruns,
            self.replays,
            self.crashes,
            self.lost,
            self.fenced_off,
            self.violations.len()
        )?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}
