//! What may be found after a death, and at the end.

use std::collections::BTreeSet;

use super::look::Look;
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

#[cfg(test)]
mod tests {
    use super::super::look::State;
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
}
