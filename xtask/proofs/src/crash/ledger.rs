//! What a victim may be held to: every line folded into what is known of each key, and faults where they do not fit.

use std::collections::HashMap;
use std::time::Duration;

use super::entry::{End, Entry};
use super::fault::{Fault, Kind, Tally};
use super::line::{Found, Line};
use crate::progress::Stopwatch;

/// Everything that was said, in as much memory as there are live keys.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: HashMap<String, Entry>,
    /// What the opening under way has found so far.
    found: HashMap<String, Found>,
    /// What every key went through since [`note`](Self::note).
    trail: Option<Vec<(String, Entry)>>,
    /// What an opening is for.
    purpose: Purpose,
    /// What the last opening found and when, if that is all it was for.
    pub(super) told: Option<(HashMap<String, Found>, u64)>,
    pub(super) tally: Tally,
}

/// What an opening is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// To be held against everything that was heard.
    #[default]
    Judge,
    /// To be held against a note, by whoever made it.
    Collect,
}

/// What was known at one moment, and all that was heard until another.
#[derive(Debug, Default)]
pub(super) struct Noted {
    entries: HashMap<String, Entry>,
    trail: Vec<(String, Entry)>,
}

impl Ledger {
    /// A ledger that judges nothing and only keeps what an opening tells.
    pub(super) fn collecting() -> Self {
        Self { purpose: Purpose::Collect, ..Self::default() }
    }

    /// Takes in one line.
    pub(super) fn hear(&mut self, line: Line) {
        match line {
            Line::Opened { millis } => {
                self.found.clear();
                self.tally.opened(Duration::from_millis(millis));
            }
            Line::Found { name, found } => drop(self.found.insert(name, found)),
            Line::Looked { now, records } => {
                self.tally.records_most = self.tally.records_most.max(records);
                self.looked(now);
            }
            Line::Claiming { name, permit } => self.change(name, |entry| {
                entry.claims.push((permit, entry.fence));
                None
            }),
            Line::Granted { name, permit, fence, attempt, now } => {
                self.tally.acknowledgements += 1;
                self.change(name, |entry| granted(entry, permit, fence, attempt, now));
            }
            Line::Replayed { name, permit, fence, outcome } => {
                self.tally.acknowledgements += 1;
                self.change(name, |entry| replayed(entry, permit, fence, &outcome));
            }
            Line::Busy { name, permit } => self.change(name, |entry| {
                answered(entry, permit);
                None
            }),
            Line::Ending { name, fence, now, retention, outcome } => self.change(name, |entry| {
                if entry.fence == fence {
                    entry.end = Some(End { outcome, kept_until: now.saturating_add(retention) });
                }
                None
            }),
            Line::Ended { name, fence } => {
                self.tally.acknowledgements += 1;
                self.change(name, |entry| {
                    if entry.fence == fence {
                        (entry.is_ended, entry.heard) = (true, Some(Stopwatch::start()));
                    }
                    None
                });
            }
            Line::Refused(why) => self.fault(Kind::Refused, why),
            Line::Wrong(what) => self.fault(Kind::Wrong, what),
        }
    }

    pub(super) fn fault(&mut self, kind: Kind, what: String) {
        self.tally.faults.push(Fault::new(kind, what));
    }

    /// Notes what is known now, and starts to keep what is heard from here on.
    pub(super) fn note(&mut self) -> Noted {
        self.trail = Some(Vec::new());
        Noted { entries: self.entries.clone(), trail: Vec::new() }
    }

    /// Adds to a note what was heard since it was made.
    pub(super) fn noted(&mut self, mut noted: Noted) -> Noted {
        noted.trail = self.trail.take().unwrap_or_default();
        noted
    }

    fn change(&mut self, name: String, how: impl FnOnce(&mut Entry) -> Option<Kind>) {
        let entry = self.entries.entry(name.clone()).or_default();
        let before = entry.clone();
        if let Some(kind) = how(entry) {
            let what = format!("{name}: a line turned {before:?} into {entry:?}");
            self.tally.faults.push(Fault::new(kind, what));
        }
        if let Some(trail) = &mut self.trail {
            trail.push((name, entry.clone()));
        }
    }

    /// An opening has told everything: judges it, and takes it for what is promised from now on.
    fn looked(&mut self, now: u64) {
        let found = std::mem::take(&mut self.found);
        if self.purpose == Purpose::Collect {
            self.told = Some((found, now));
            return;
        }
        let faults = judge(&self.entries, &[], &found, now);
        self.tally.faults.extend(faults);
        for name in found.keys() {
            self.entries.entry(name.clone()).or_default();
        }
        for (name, entry) in &mut self.entries {
            entry.adopt(found.get(name), now);
            if let Some(trail) = &mut self.trail {
                trail.push((name.clone(), entry.clone()));
            }
        }
        // Names of the pool are kept for good: their fences must grow whatever was swept in between.
        self.entries.retain(|name, entry| {
            name.starts_with("pool-") || found.contains_key(name) || !entry.is_over(now)
        });
    }
}

impl Noted {
    /// Judges what was found in an image that was made after the note and before the end of its trail.
    pub(super) fn judge(&self, image: &HashMap<String, Found>, now: u64) -> Vec<Fault> {
        judge(&self.entries, &self.trail, image, now)
    }
}

/// Every key must be as its entry allows, or as any entry on the trail does.
fn judge(
    entries: &HashMap<String, Entry>,
    trail: &[(String, Entry)],
    found: &HashMap<String, Found>,
    now: u64,
) -> Vec<Fault> {
    let mut later: HashMap<&str, Vec<&Entry>> = HashMap::new();
    for (name, entry) in trail {
        later.entry(name).or_default().push(entry);
    }
    let unheard_of = Entry::default();
    let names = entries.keys().chain(found.keys().filter(|name| !entries.contains_key(*name)));
    names
        .filter_map(|name| {
            let (entry, found) = (entries.get(name).unwrap_or(&unheard_of), found.get(name));
            let kind = entry.judge(found, now)?;
            let afterwards = later.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            let is_explained = afterwards.iter().any(|entry| entry.judge(found, now).is_none());
            let what = || format!("{name}: known was {entry:?}, found was {found:?} at {now}");
            (!is_explained).then(|| Fault { heard: entry.heard, ..Fault::new(kind, what()) })
        })
        .collect()
}

/// The claim has its answer.
fn answered(entry: &mut Entry, permit: u128) -> Option<u64> {
    let at = entry.claims.iter().position(|(claim, _)| *claim == permit)?;
    Some(entry.claims.swap_remove(at).1)
}

fn granted(entry: &mut Entry, permit: u128, fence: u64, attempt: u32, now: u64) -> Option<Kind> {
    let fault = if answered(entry, permit).is_none() {
        Some(Kind::Corrupt)
    } else if fence == entry.fence {
        // Only the permit that runs may go on, and only as long as it runs.
        let is_resumed = permit == entry.permit && attempt == entry.attempt && !entry.is_ended;
        (!is_resumed).then_some(Kind::Doubled)
    } else {
        let is_free = fence > entry.fence && entry.may_be_passed(now);
        (!is_free).then_some(Kind::Doubled)
    };
    let claims = std::mem::take(&mut entry.claims);
    let heard = Some(Stopwatch::start());
    *entry = Entry { fence, attempt, permit, claims, heard, ..Entry::default() };
    fault
}

fn replayed(entry: &mut Entry, permit: u128, fence: u64, outcome: &str) -> Option<Kind> {
    let Some(known) = answered(entry, permit) else { return Some(Kind::Corrupt) };
    if fence < known {
        // An older run than the one that had been granted before this claim was even made.
        return Some(Kind::Lost);
    }
    if fence < entry.fence {
        // The answer was on its way while the key went on.
        return None;
    }
    let is_right = entry.end.as_ref().is_some_and(|end| end.outcome.as_deref() == Some(outcome));
    entry.is_ended |= is_right;
    (fence != entry.fence || !is_right).then_some(Kind::Corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::line::parse;

    /// What is wrong with these lines.
    fn faults(lines: &[&str]) -> Vec<Kind> {
        let mut ledger = Ledger::default();
        for line in lines {
            ledger.hear(parse(line).unwrap());
        }
        ledger.tally.faults.iter().map(|fault| fault.kind).collect()
    }

    const RUN: [&str; 2] = ["claiming k a", "granted k a 5 1 1000"];
    const COMPLETE: [&str; 2] = ["completing k 5 1000 9000000 5:0:3", "done k 5"];
    const AGAIN: [&str; 2] = ["claiming k b", "granted k b 6 1 2000"];

    #[test]
    fn a_history_without_faults_has_none() {
        let replay = ["claiming k b", "replayed k b 5 5:0:3"];
        let crash = ["opened 1", "found k done 5 1 5:0:3", "looked 2000 1"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &replay, &crash, &replay].concat()), []);
    }

    #[test]
    fn a_second_grant_is_found_while_the_first_runs_and_while_its_outcome_is_kept() {
        assert_eq!(faults(&[&RUN[..], &AGAIN].concat()), [Kind::Doubled]);
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &AGAIN].concat()), [Kind::Doubled]);
        let late = ["claiming k b", "granted k b 6 1 9999999"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &late].concat()), []);
        assert_eq!(faults(&[&RUN[..], &["releasing k 5 1000 9000000"], &AGAIN].concat()), []);
    }

    #[test]
    fn what_is_lost_comes_with_the_moment_it_was_heard() {
        let mut ledger = Ledger::default();
        for line in [&RUN[..], &COMPLETE, &["opened 1", "looked 2000 0"]].concat() {
            ledger.hear(parse(line).unwrap());
        }
        let [fault] = ledger.tally.faults.as_slice() else { panic!("{:?}", ledger.tally.faults) };
        assert_eq!(fault.kind, Kind::Lost);
        assert!(fault.heard.is_some_and(|heard| heard.elapsed() < Duration::from_mins(1)));
    }

    #[test]
    fn what_was_under_way_during_a_look_is_said_again_after_it() {
        let look = ["opened 1", "found k running 5 1 a", "looked 2000 1"];
        assert_eq!(faults(&[&["claiming k a"][..], &look, &RUN].concat()), []);
        assert_eq!(faults(&[&["claiming k a"][..], &look, &RUN[1..]].concat()), [Kind::Corrupt]);
        let looked_done = ["opened 1", "found k done 5 1 5:0:3", "looked 2000 1"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE[..1], &looked_done, &COMPLETE].concat()), []);
    }

    #[test]
    fn a_fence_is_granted_once_and_only_grows() {
        let release = ["releasing k 5 1000 9000000", "released k 5"];
        for again in ["granted k b 5 1 2000", "granted k b 4 1 2000"] {
            assert_eq!(faults(&[&RUN[..], &release, &["claiming k b", again]].concat()), [Kind::Doubled]);
        }
        let resumed = ["claiming k a", "granted k a 5 1 2000"];
        assert_eq!(faults(&[&RUN[..], &resumed].concat()), []);
    }

    #[test]
    fn what_an_opening_does_not_find_is_lost_once() {
        let crash = ["opened 1", "looked 2000 0"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &crash, &crash].concat()), [Kind::Lost]);
        let back = ["opened 1", "found k running 5 1 a", "looked 2000 1"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &back].concat()), [Kind::Lost]);
        assert_eq!(faults(&[&RUN[..], &back].concat()), []);
    }

    #[test]
    fn keys_that_are_over_take_no_memory() {
        let mut ledger = Ledger::default();
        let crashes = ["looked 9500000 0", "looked 9600000 0", "looked 99000000 0"];
        for line in [&RUN[..], &COMPLETE, &["claiming never b"], &crashes].concat() {
            ledger.hear(parse(line).unwrap());
        }
        assert!(ledger.tally.faults.is_empty(), "{:?}", ledger.tally.faults);
        assert!(ledger.entries.is_empty(), "{:?}", ledger.entries);
    }

    #[test]
    fn an_outcome_that_nobody_gave_is_found() {
        let other = ["claiming k b", "replayed k b 5 garbled:3"];
        assert_eq!(faults(&[&RUN[..], &COMPLETE, &other].concat()), [Kind::Corrupt]);
        let nobodys = ["opened 1", "found k done 5 1 5:0:3", "looked 2000 1"];
        assert_eq!(faults(&nobodys), [Kind::Corrupt]);
    }

    #[test]
    fn an_image_may_be_as_it_was_at_any_moment_of_the_trail_and_no_older() {
        let mut ledger = Ledger::default();
        let hear = |ledger: &mut Ledger, lines: &[&str]| {
            for line in lines {
                ledger.hear(parse(line).unwrap());
            }
        };
        hear(&mut ledger, &RUN);
        let noted = ledger.note();
        hear(&mut ledger, &COMPLETE);
        let noted = ledger.noted(noted);
        let image = |state| HashMap::from([("k".to_owned(), Found { fence: 5, attempt: 1, state })]);
        let kinds = |image| noted.judge(&image, 2_000).iter().map(|fault| fault.kind).collect::<Vec<_>>();
        assert_eq!(kinds(image(crate::crash::line::State::Running(10))), []);
        assert_eq!(kinds(image(crate::crash::line::State::Done("5:0:3".into()))), []);
        assert_eq!(kinds(HashMap::new()), [Kind::Lost]);
        assert_eq!(kinds(image(crate::crash::line::State::Released)), [Kind::Corrupt]);
    }
}
