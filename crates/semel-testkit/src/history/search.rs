//! Looks for an order, and remembers where there is none.
//!
//! Wing and Gong's search: take any event that nothing else had ended before, apply it, go on; at a dead end step
//! back. A state that led nowhere once, with the same events taken, is not looked at again.

use std::collections::HashSet;

use semel::clock::Timestamp;

use super::model::Model;
use super::moment::Moments;
use super::recorder::Event;
use super::verdict::Verdict;

/// How many states are looked at before a search is given up, unless said.
const STATES_MAX: usize = 100_000;

/// Decides whether the history of one key is linearizable.
pub fn check(events: &[Event]) -> Verdict {
    check_within(events, STATES_MAX)
}

/// The same, looking at no more than `states_max` states.
pub fn check_within(events: &[Event], states_max: usize) -> Verdict {
    Search::new(events).run(states_max)
}

struct Search<'a> {
    events: &'a [Event],
    /// Places in `events`, in the order of their invocation.
    by_invocation: Vec<usize>,
    moments: Moments,
    /// Which events are taken, one bit each.
    taken: Vec<u64>,
    order: Vec<usize>,
    /// How many events must be in an order.
    needed: usize,
    answered: usize,
    longest: Vec<usize>,
    stuck_at: Model,
}

/// A state on the way, and what may come next that has not been tried.
struct Visit {
    untried: Vec<(usize, Model)>,
}

impl<'a> Search<'a> {
    fn new(events: &'a [Event]) -> Self {
        let mut by_invocation: Vec<_> = (0..events.len()).collect();
        by_invocation.sort_by_key(|at| events.get(*at).map(|event| event.invoked_at));
        Self {
            events,
            by_invocation,
            moments: Moments::of(events),
            taken: vec![0; events.len().div_ceil(64)],
            order: Vec::new(),
            needed: events.iter().filter(|event| event.answer.is_some()).count(),
            answered: 0,
            longest: Vec::new(),
            stuck_at: Model::default(),
        }
    }

    fn run(mut self, states_max: usize) -> Verdict {
        let mut been_at = HashSet::new();
        let mut states: usize = 1;
        let mut path = vec![Visit { untried: self.choices(&Model::default()) }];
        while let Some(visit) = path.last_mut() {
            if self.answered == self.needed {
                return Verdict::Linearizable { order: self.order };
            }
            let Some((at, model)) = visit.untried.pop() else {
                path.pop();
                self.step_back();
                continue;
            };
            self.take(at, &model);
            if !been_at.insert(model.digest(&self.taken)) {
                self.step_back();
                continue;
            }
            states += 1;
            if states > states_max {
                let explanation = self.explain();
                return Verdict::Undecided { states, explanation };
            }
            let untried = self.choices(&model);
            path.push(Visit { untried });
        }
        if self.needed == 0 {
            return Verdict::Linearizable { order: Vec::new() };
        }
        let explanation = self.explain();
        Verdict::Violation { prefix: self.longest, explanation }
    }

    fn take(&mut self, at: usize, model: &Model) {
        self.flip(at);
        self.order.push(at);
        self.answered += self.counts(at);
        if self.order.len() > self.longest.len() {
            self.longest.clone_from(&self.order);
            self.stuck_at = model.clone();
        }
    }

    fn step_back(&mut self) {
        if let Some(at) = self.order.pop() {
            self.flip(at);
            self.answered -= self.counts(at);
        }
    }

    /// What may come next, the most likely last.
    fn choices(&self, model: &Model) -> Vec<(usize, Model)> {
        let mut choices = Vec::new();
        let open: Vec<_> = self.open().collect();
        for (at, event) in open.iter().copied() {
            let latest = first_decided(&open, at);
            for moment in self.moments.of_event(at, event, model) {
                for step in model.after(event, moment).unwrap_or_default() {
                    if latest.is_some_and(|latest| step.next.latest > latest) {
                        continue;
                    }
                    match (&event.answer, step.writes) {
                        // Nothing changed and nothing was learnt, so it may as well come right now.
                        (Some(_), false) if step.next == *model => return vec![(at, step.next)],
                        // Nobody heard of it and nothing came of it: it need not be in the order.
                        (None, false) => {}
                        _ => choices.push((at, step.next)),
                    }
                }
            }
        }
        let likely = |at: usize| {
            let event = self.events.get(at);
            let version = event.and_then(|event| event.seen()?.version);
            (version.is_none(), version, event.and_then(Event::deadline).unwrap_or(u64::MAX))
        };
        choices.sort_by_key(|(at, _)| std::cmp::Reverse(likely(*at)));
        choices
    }

    /// The events that could come next: no event that is not taken had ended before they began.
    fn open(&self) -> impl Iterator<Item = (usize, &'a Event)> {
        let mut first_end = u64::MAX;
        let mut open = Vec::new();
        for at in &self.by_invocation {
            let Some(event) = self.events.get(*at).filter(|_| !self.is_taken(*at)) else { continue };
            if event.invoked_at > first_end {
                break;
            }
            first_end = first_end.min(event.deadline().unwrap_or(u64::MAX));
            open.push((*at, event));
        }
        open.into_iter().filter(move |(_, event)| event.invoked_at <= first_end)
    }

    fn explain(&mut self) -> String {
        self.taken.fill(0);
        for at in self.longest.clone() {
            self.flip(at);
        }
        let mut lines =
            vec![format!("{} of {} answers fit; then none does.", self.longest.len(), self.needed)];
        let recent = self.longest.len().saturating_sub(6);
        lines.extend(
            self.longest
                .iter()
                .skip(recent)
                .filter_map(|at| self.events.get(*at))
                .map(|event| format!("  {event}")),
        );
        lines.push(format!("Then {}, and:", self.stuck_at.describe()));
        for (at, event) in self.open() {
            let moments = self.moments.of_event(at, event, &self.stuck_at);
            let why = moments.first().map(|moment| self.stuck_at.after(event, *moment));
            let why = match why {
                Some(Err(why)) => why,
                Some(Ok(_)) | None => "after that nothing else fits".into(),
            };
            lines.push(format!("  {event}: {why}"));
        }
        lines.join("\n")
    }

    fn counts(&self, at: usize) -> usize {
        self.events.get(at).map_or(0, |event| usize::from(event.answer.is_some()))
    }

    fn flip(&mut self, at: usize) {
        if let Some(word) = self.taken.get_mut(at / 64) {
            *word ^= 1 << (at % 64);
        }
    }

    fn is_taken(&self, at: usize) -> bool {
        self.taken.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }
}

/// When the first of the other answers was decided. They are all yet to come, so nothing may be stamped after it:
/// without this bound, lost replies would be strung together far into the future.
fn first_decided(open: &[(usize, &Event)], except: usize) -> Option<Timestamp> {
    let others = open.iter().filter(|(at, event)| *at != except && event.answer.is_some());
    others.filter_map(|(_, event)| event.now).min()
}
