//! Which keys of a scope wait to be run: a bounded list that operators add to, and that is shortened by whoever has run one.
//!
//! A list is a done record that is kept for ever and written anew with every change, as an offset is. It decides nothing:
//! two callers that find a key in it both claim that key, and one of them runs.

use serde::{Deserialize, Serialize};

use super::offset::fresh;
use super::ruling::Ruling;
use crate::clock::Timestamp;
use crate::key::Key;
use crate::outcome::{Outcome, OutcomeKind};
use crate::record::{Done, Grant, PermitId, Record, State};

/// The kind of an outcome that is a list of keys that wait.
pub const WAITING_KIND: &str = "waiting";
/// How many keys wait at once.
pub const WAITING_MAX: usize = 1_000;
/// How many bytes their operations and names have together: the list is read once a second.
pub const WAITING_BYTES_MAX: usize = 256 << 10;

/// A key that waits, in the scope of its list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The operation of the key.
    pub operation: Box<str>,
    /// The name of the key.
    pub name: Box<str>,
}

/// A change of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These wait from now on, behind all that wait already. Those for which there is no room are left out.
    Add(Vec<Waiting>),
    /// These wait no longer.
    Remove(Vec<Waiting>),
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// All that wait now, in the order in which they were added.
    Waiting(Vec<Waiting>),
    /// Nothing changed: the record under this key is no list.
    NoList,
}

/// Decides a change. The same change twice has the effect of one, so one whose reply was lost may be asked for again.
pub fn change(
    found: Option<&Record>,
    key: &Key,
    permit_id: PermitId,
    wanted: &Change,
    now: Timestamp,
) -> Ruling<Changed> {
    let before = match found.map(read) {
        None => Vec::new(),
        Some(Some(list)) => list,
        Some(None) => return Ruling::unchanged(Changed::NoList),
    };
    let after = changed(before.clone(), wanted);
    if after == before {
        return Ruling::unchanged(Changed::Waiting(after));
    }
    let state = done(permit_id, &after);
    let next = found.map_or_else(|| fresh(key, state.clone()), |record| record.in_state(state.clone()));
    Ruling::write(Changed::Waiting(after), next, now)
}

/// The list in a record, if that is what it keeps.
pub fn read(record: &Record) -> Option<Vec<Waiting>> {
    let State::Done(done) = &record.state else { return None };
    (done.outcome.kind().as_str() == WAITING_KIND).then_some(())?;
    serde_json::from_slice(done.outcome.bytes()).ok()
}

fn changed(mut list: Vec<Waiting>, wanted: &Change) -> Vec<Waiting> {
    match wanted {
        Change::Remove(gone) => list.retain(|waiting| !gone.contains(waiting)),
        Change::Add(more) => {
            let mut bytes = list.iter().map(Waiting::bytes).fold(0, usize::saturating_add);
            for waiting in more {
                let with = bytes.saturating_add(waiting.bytes());
                let has_room = list.len() < WAITING_MAX && with <= WAITING_BYTES_MAX;
                if has_room && !list.contains(waiting) {
                    list.push(waiting.clone());
                    bytes = with;
                }
            }
        }
    }
    list
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.operation.len().saturating_add(self.name.len())
    }
}

fn done(permit_id: PermitId, list: &[Waiting]) -> State {
    // Text only: this cannot fail.
    let bytes = serde_json::to_vec(list).unwrap_or_default();
    State::Done(Done {
        grant: Grant { permit_id, ..Grant::forgotten(Timestamp::UNSTAMPED) },
        settled_at: Timestamp::UNSTAMPED,
        outcome: Outcome::new(OutcomeKind::from_word(WAITING_KIND), bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Version;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn key() -> Key {
        Key::scoped(["orders"], "requeues", "waiting").unwrap()
    }

    fn waiting(name: &str) -> Waiting {
        Waiting { operation: "receipt requeue 1".into(), name: name.into() }
    }

    /// The list behind a change, and the record if it was written.
    fn changed_to(found: Option<&Record>, wanted: &Change) -> (Changed, Option<Record>) {
        let ruling = change(found, &key(), PermitId::new(7), wanted, NOW);
        let written = ruling.write.map(|write| Record::clone(&write.next.stamp(Version::new(1), NOW)));
        (ruling.answer, written)
    }

    fn names(answer: &Changed) -> Vec<&str> {
        let Changed::Waiting(list) = answer else { panic!("no list") };
        list.iter().map(|waiting| &*waiting.name).collect()
    }

    #[test]
    fn what_is_added_waits_once_and_in_order_until_it_is_removed() {
        let (answer, record) = changed_to(None, &Change::Add(vec![waiting("b"), waiting("a"), waiting("b")]));
        assert_eq!(names(&answer), ["b", "a"]);
        let record = record.expect("is written");
        assert_eq!(record.live_until(), None, "kept for ever");
        let (answer, written) = changed_to(Some(&record), &Change::Add(vec![waiting("a")]));
        assert!(names(&answer) == ["b", "a"] && written.is_none(), "the same again writes nothing");
        let (answer, record) = changed_to(Some(&record), &Change::Remove(vec![waiting("b"), waiting("x")]));
        assert_eq!(names(&answer), ["a"]);
        let (answer, _) = changed_to(record.as_ref(), &Change::Add(vec![waiting("b")]));
        assert_eq!(names(&answer), ["a", "b"]);
    }

    #[test]
    fn a_list_is_bounded_by_its_number_and_by_its_bytes() {
        let many = (0..WAITING_MAX.saturating_add(7)).map(|number| waiting(&number.to_string())).collect();
        let (answer, _) = changed_to(None, &Change::Add(many));
        assert_eq!(names(&answer).len(), WAITING_MAX);
        let large = (0..WAITING_MAX).map(|number| waiting(&format!("{number:01000}"))).collect();
        let (answer, record) = changed_to(None, &Change::Add(large));
        assert!((200..300).contains(&names(&answer).len()), "{}", names(&answer).len());
        assert!(record.expect("is written").outcome().expect("is done").bytes().len() < 300 << 10);
    }

    #[test]
    fn another_record_is_no_list_and_stays_as_it_is() {
        let (_, record) = changed_to(None, &Change::Add(vec![waiting("a")]));
        let mut other = record.expect("is written");
        if let State::Done(done) = &mut other.state {
            done.outcome = Outcome::success("[]");
        }
        assert_eq!(changed_to(Some(&other), &Change::Add(vec![waiting("b")])), (Changed::NoList, None));
    }
}
