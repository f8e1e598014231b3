//! What a source delivered and was not yet told the end of.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::event::Event;
use crate::source::{Delivery, Tag};

/// Events that were delivered and not yet acknowledged, and those that were given back and wait to be delivered again.
///
/// For sources whose broker cannot take a delivery back.
#[derive(Debug, Default)]
pub struct Outstanding {
    last: u64,
    out: HashMap<Tag, Event>,
    back: BTreeMap<(Instant, Tag), Event>,
}

impl Outstanding {
    /// Delivers an event under a new tag, and remembers it.
    pub fn hand_out(&mut self, event: Event) -> Delivery {
        self.last = self.last.saturating_add(1);
        let tag = Tag(self.last);
        self.out.insert(tag, event.clone());
        Delivery { event, tag }
    }

    /// The event that was delivered under this tag, until it is settled or given back.
    pub fn get(&self, tag: Tag) -> Option<&Event> {
        self.out.get(&tag)
    }

    /// Forgets these deliveries: they are acknowledged.
    pub fn settle(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.out.remove(tag);
        }
    }

    /// Delivers these again, after this long at the earliest. Unknown tags are ignored.
    pub fn give_back(&mut self, tags: &[Tag], after: Duration) {
        let now = Instant::now();
        // A delay beyond the clock's end is as good as a day: the event is not lost for it.
        let due_at = now
            .checked_add(after)
            .unwrap_or_else(|| now.checked_add(Duration::from_hours(24)).unwrap_or(now));
        for &tag in tags {
            if let Some(event) = self.out.remove(&tag) {
                self.back.insert((due_at, tag), event);
            }
        }
    }

    /// Delivers, under new tags, at most `most` events that were given back and are due.
    pub fn due(&mut self, most: usize) -> Vec<Delivery> {
        let now = Instant::now();
        let mut due = Vec::new();
        while due.len() < most && self.due_at().is_some_and(|at| at <= now) {
            let Some((_, mut event)) = self.back.pop_first() else { break };
            event.deliveries = event.deliveries.map(|before| before.saturating_add(1));
            due.push(self.hand_out(event));
        }
        due
    }

    /// When the next event that was given back is due.
    pub fn due_at(&self) -> Option<Instant> {
        self.back.first_key_value().map(|((at, _), _)| *at)
    }

    /// Waits until the next event that was given back is due; for ever if there is none.
    pub async fn until_due(&self) {
        match self.due_at() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Everything that was delivered or given back and is not settled, in no order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.out.values().chain(self.back.values())
    }

    /// Forgets a stream: its tags are unknown from now on.
    pub fn forget(&mut self, stream: &str) {
        self.out.retain(|_, event| &*event.stream != stream);
        self.back.retain(|_, event| &*event.stream != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_is_handed_out_again_once_and_not_before_its_time() {
        let mut outstanding = Outstanding::default();
        let first = outstanding.hand_out(Event::new("s", "s/1", "one"));
        let second = outstanding.hand_out(Event::new("s", "s/2", "two"));
        outstanding.give_back(&[first.tag, second.tag], Duration::from_secs(5));
        outstanding.give_back(&[first.tag], Duration::ZERO);
        assert!(outstanding.due(9).is_empty());
        outstanding.until_due().await;
        let again = outstanding.due(1);
        assert_eq!(again[0].event, first.event);
        assert_ne!(again[0].tag, first.tag);
        assert_eq!(outstanding.due(9).len(), 1);
        assert!(outstanding.due(9).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_to_its_end_or_is_forgotten_is_not_handed_out_again() {
        let mut outstanding = Outstanding::default();
        let done = outstanding.hand_out(Event::new("s", "s/1", "one")).tag;
        let gone = outstanding.hand_out(Event::new("t", "t/1", "one")).tag;
        outstanding.settle(&[done]);
        outstanding.give_back(&[done, gone], Duration::MAX);
        outstanding.forget("t");
        assert_eq!(outstanding.due_at(), None);
        assert!(outstanding.out.is_empty());
    }
}
