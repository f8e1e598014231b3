//! What may be found after a death, and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::scene::Handler;

/// What is wrong, in words; nothing if all is well.
pub(super) type Faults = Vec<String>;

/// One delivery of the stream: of which event, and up to where it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) event: u64,
    pub(super) position: u64,
}

/// After any death: neither the offset nor the broker's floor passes an event without a receipt; no receipt is without
/// its effect; and effects beyond the first are what the handler allows.
pub(super) fn after_death(handler: Handler, stream: &[Place], look: &Look) -> Faults {
    let mut faults = Vec::new();
    for (what, reached) in [("the committed offset", look.offset), ("what was acknowledged", look.floor)] {
        let passed = stream.iter().filter(|place| reached.is_some_and(|reached| place.position <= reached));
        for place in passed.filter(|place| !look.has_receipt(place.event)) {
            faults.push(format!("{what} passed event {} without a receipt", place.event));
        }
    }
    let events: BTreeSet<_> = stream.iter().map(|place| place.event).collect();
    for event in &events {
        let effects = look.effects_of(*event);
        if look.has_receipt(*event) && effects.is_empty() {
            faults.push(format!("event {event} has a receipt, and no effect"));
        }
        faults.extend(doubled(handler, *event, effects, look));
    }
    for event in look.effects.keys().filter(|event| !events.contains(event)) {
        faults.push(format!("an effect of event {event}, which there is not"));
    }
    faults
}

/// What is wrong with how often an event had its effect.
fn doubled(handler: Handler, event: u64, effects: &[u64], look: &Look) -> Option<String> {
    let attempt = look.records.get(&event).map_or(0, |(_, attempt)| *attempt);
    match handler {
        // The effect and the receipt are one.
        Handler::Transaction => {
            let wanted = usize::from(look.has_receipt(event));
            (effects.len() != wanted).then(|| {
                format!("event {event} has {} effects in the database, and {wanted} receipts", effects.len())
            })
        }
        Handler::Hold => (effects.len() > 1).then(|| {
            format!("event {event} had its effect {} times, although a lapse is held", effects.len())
        }),
        // Beyond one only by attempts that said that they are not the first.
        Handler::Rerun => {
            let distinct: BTreeSet<_> = effects.iter().collect();
            let is_said = distinct.len() == effects.len()
                && effects.iter().all(|effect| (1..=attempt).contains(effect));
            (!is_said).then(|| {
                format!(
                    "event {event} had effects by its attempts {effects:?}, and its record is at {attempt}"
                )
            })
        }
    }
}

/// How many deliveries are of events that have a receipt: no more than these may be acknowledged.
pub(super) fn acknowledged_most(stream: &[Place], look: &Look) -> u64 {
    stream.iter().filter(|place| look.has_receipt(place.event)).count() as u64
}

/// Whether every event has its receipt.
pub(super) fn is_done(stream: &[Place], look: &Look) -> bool {
    stream.iter().all(|place| look.has_receipt(place.event))
}

/// The state of an event's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Done,
    Released,
    Held,
}

/// What the next victim says before it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The committed offset.
    pub(super) offset: Option<u64>,
    /// Up to where the broker says that everything was acknowledged.
    pub(super) floor: Option<u64>,
    /// The records of events, each with its attempt.
    pub(super) records: BTreeMap<u64, (State, u64)>,
    /// The effects of events, each by its attempt.
    pub(super) effects: BTreeMap<u64, Vec<u64>>,
}

impl Look {
    /// Takes one line in; `false` once it was the last.
    pub(super) fn hear(&mut self, line: &str) -> Result<bool> {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["offset", position] => self.offset = Some(position.parse()?),
            ["floor", position] => self.floor = Some(position.parse()?),
            ["record", event, state, attempt] => {
                let state = match state {
                    "running" => State::Running,
                    "done" => State::Done,
                    "released" => State::Released,
                    "held" => State::Held,
                    _ => bail!("a record that is `{state}`"),
                };
                self.records.insert(event.parse()?, (state, attempt.parse()?));
            }
            ["row", event, attempt] => self.effect(event, attempt)?,
            ["looked"] => return Ok(false),
            _ => bail!("the victim said `{line}`"),
        }
        Ok(true)
    }

    /// Takes in the effects that are lines of a file.
    pub(super) fn read_effects(&mut self, file: &Path) -> Result<()> {
        if !file.exists() {
            return Ok(());
        }
        let text = std::fs::read_to_string(file).context("cannot read the effects")?;
        for line in text.lines() {
            let (event, attempt) = line.split_once(' ').context("an effect that was cut off")?;
            self.effect(event, attempt)?;
        }
        Ok(())
    }

    fn effect(&mut self, event: &str, attempt: &str) -> Result<()> {
        self.effects.entry(event.parse()?).or_default().push(attempt.parse()?);
        Ok(())
    }

    pub(super) fn has_receipt(&self, event: u64) -> bool {
        self.records.get(&event).is_some_and(|(state, _)| *state == State::Done)
    }

    pub(super) fn effects_of(&self, event: u64) -> &[u64] {
        self.effects.get(&event).map_or(&[], Vec::as_slice)
    }

    /// Those that wait for somebody to look.
    pub(super) fn held(&self) -> impl Iterator<Item = u64> {
        self.records.iter().filter(|(_, (state, _))| *state == State::Held).map(|(event, _)| *event)
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::State;
    use super::*;

    /// Events 0, 1, 0 again, and 2.
    fn stream() -> Vec<Place> {
        [(0, 10), (1, 20), (0, 30), (2, 40)].map(|(event, position)| Place { event, position }).to_vec()
    }

    fn look(offset: u64, done: &[u64], effects: &[(u64, &[u64])]) -> Look {
        Look {
            offset: Some(offset),
            floor: None,
            records: done.iter().map(|event| (*event, (State::Done, 2))).collect(),
            effects: effects.iter().map(|(event, attempts)| (*event, attempts.to_vec())).collect(),
        }
    }

    fn faults(handler: Handler, look: &Look) -> usize {
        after_death(handler, &stream(), look).len()
    }

    #[test]
    fn an_offset_that_passes_an_event_without_a_receipt_is_a_fault() {
        let found = look(10, &[0, 1], &[(0, &[1]), (1, &[1])]);
        assert_eq!(faults(Handler::Rerun, &found), 0);
        assert_eq!(faults(Handler::Rerun, &Look { offset: Some(30), ..found.clone() }), 0);
        assert_eq!(faults(Handler::Rerun, &Look { offset: Some(40), ..found.clone() }), 1);
        assert_eq!(faults(Handler::Rerun, &Look { floor: Some(40), ..found.clone() }), 1);
        assert_eq!(faults(Handler::Rerun, &look(20, &[1], &[(1, &[1])])), 1, "the first is missing");
        assert_eq!((acknowledged_most(&stream(), &found), is_done(&stream(), &found)), (3, false));
    }

    #[test]
    fn a_receipt_without_an_effect_is_a_fault() {
        assert_eq!(faults(Handler::Rerun, &look(0, &[0], &[])), 1);
        assert_eq!(faults(Handler::Hold, &look(0, &[0], &[])), 1);
    }

    #[test]
    fn more_than_one_effect_is_allowed_only_to_a_rerun_and_by_other_attempts() {
        assert_eq!(faults(Handler::Rerun, &look(0, &[0], &[(0, &[1, 2])])), 0);
        assert_eq!(faults(Handler::Rerun, &look(0, &[0], &[(0, &[1, 1])])), 1, "the same attempt");
        assert_eq!(faults(Handler::Rerun, &look(0, &[0], &[(0, &[1, 3])])), 1, "never granted");
        assert_eq!(faults(Handler::Hold, &look(0, &[0], &[(0, &[1, 2])])), 1);
        assert_eq!(faults(Handler::Hold, &look(0, &[0], &[(0, &[2])])), 0);
    }

    #[test]
    fn in_a_transaction_effect_and_receipt_are_one() {
        assert_eq!(faults(Handler::Transaction, &look(0, &[0], &[(0, &[2])])), 0);
        assert_eq!(faults(Handler::Transaction, &look(0, &[0], &[(0, &[1, 2])])), 1);
        assert_eq!(faults(Handler::Transaction, &look(0, &[], &[(0, &[1])])), 1);
        assert_eq!(faults(Handler::Transaction, &look(0, &[0], &[])), 2);
    }

    #[test]
    fn an_effect_of_nobody_is_a_fault() {
        assert_eq!(faults(Handler::Rerun, &look(0, &[], &[(9, &[1])])), 1);
    }

    #[test]
    fn what_the_victim_says_is_understood_to_the_last_word() {
        let mut look = Look::default();
        for line in ["offset 40", "floor 3", "record 7 done 2", "record 8 held 1", "row 7 1", "row 7 2"] {
            assert!(look.hear(line).unwrap());
        }
        assert!(!look.hear("looked").unwrap());
        assert_eq!((look.offset, look.floor), (Some(40), Some(3)));
        assert!(look.has_receipt(7) && !look.has_receipt(8) && !look.has_receipt(9));
        assert_eq!((look.effects_of(7), look.effects_of(8)), (&[1, 2][..], &[][..]));
        assert_eq!(look.held().collect::<Vec<_>>(), [8]);
        for line in ["record 7 gone 1", "offset", "hello", "row x 1"] {
            assert!(look.hear(line).is_err(), "{line}");
        }
    }
}
