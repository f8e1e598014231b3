//! When an event may have been decided and stamped, as far as that is known.

use semel::clock::Timestamp;

use super::event::Event;
use super::model::Model;

/// When an event was decided, and between when and when the store stamped what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    pub(super) stamped_from: Timestamp,
    pub(super) stamped_until: Timestamp,
}

/// What the moments that somebody saw say about those that nobody did: the store's clock never runs backwards.
pub(super) struct Moments {
    /// For each event, the last moment seen by an event that had ended before it began.
    earliest: Vec<Timestamp>,
    /// For each event, the first moment seen by an event that began after it had ended.
    latest: Vec<Timestamp>,
}

const START: Timestamp = Timestamp::from_micros(1);
const FAR: Timestamp = Timestamp::from_micros(u64::MAX);

impl Moments {
    pub(super) fn of(events: &[Event]) -> Self {
        Self { earliest: earliest(events), latest: latest(events) }
    }

    /// What may be true of the event after what the model has seen. A decision whose moment is not known is tried as
    /// early as it can be, and where the record would be judged otherwise.
    pub(super) fn of_event(&self, at: usize, event: &Event, model: &Model) -> Vec<Moment> {
        let written_at = event.seen().and_then(|seen| seen.written_at);
        let floor = self.earliest.get(at).copied().unwrap_or(START).max(model.latest);
        let latest = written_at.or(self.latest.get(at).copied()).unwrap_or(FAR);
        let nows: Vec<_> = match event.now {
            Some(now) => vec![now],
            None => std::iter::once(floor)
                .chain(model.deadlines())
                .filter(|now| *now >= floor && *now <= latest)
                .collect(),
        };
        let moment = |now: Timestamp| {
            let stamped_from = written_at.unwrap_or(now.max(floor));
            Moment { now, stamped_from, stamped_until: written_at.unwrap_or(latest).max(stamped_from) }
        };
        nows.into_iter().map(moment).collect()
    }
}

fn earliest(events: &[Event]) -> Vec<Timestamp> {
    let mut ended: Vec<_> = events.iter().filter_map(|event| Some((event.deadline()?, event.now?))).collect();
    ended.sort_unstable();
    let mut last = START;
    for (_, now) in &mut ended {
        last = last.max(*now);
        *now = last;
    }
    let before = |event: &Event| {
        let count = ended.partition_point(|(returned_at, _)| *returned_at < event.invoked_at);
        count.checked_sub(1).and_then(|at| ended.get(at)).map_or(START, |(_, now)| *now)
    };
    events.iter().map(before).collect()
}

fn latest(events: &[Event]) -> Vec<Timestamp> {
    let mut begun: Vec<_> = events.iter().filter_map(|event| Some((event.invoked_at, event.now?))).collect();
    begun.sort_unstable();
    let mut first = FAR;
    for (_, now) in begun.iter_mut().rev() {
        first = first.min(*now);
        *now = first;
    }
    let after = |event: &Event| {
        let ended = event.deadline()?;
        let count = begun.partition_point(|(invoked_at, _)| *invoked_at <= ended);
        begun.get(count).map(|(_, now)| *now)
    };
    events.iter().map(|event| after(event).unwrap_or(FAR)).collect()
}
