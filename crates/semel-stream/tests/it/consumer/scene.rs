//! What the tests of the loop share: a store on the test's own time, events, and a ledger of what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use semel::clock::{Clock, Timestamp};
use semel::store::MemoryStore;
use semel::{Outcome, Semel};
use semel_stream::{Backoff, Event, Handled, Pipeline, Position, Step, Watch};
use tokio::time::Instant;

/// A clock that stands still when the test's time does.
pub(super) struct TestClock {
    started: Instant,
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.started.elapsed())
    }
}

pub(super) fn memory() -> MemoryStore {
    MemoryStore::builder().clock(TestClock { started: Instant::now() }).build()
}

/// A pipeline on a store in memory.
pub(super) fn pipeline() -> Pipeline {
    Pipeline::new(&Semel::new(memory()), "orders").unwrap()
}

/// Which of these events have no receipt yet.
pub(super) async fn unseen(pipeline: &Pipeline, events: &[impl AsRef<str>]) -> Vec<bool> {
    pipeline.unseen(events).await.unwrap().into_iter().collect::<semel::Result<_>>().unwrap()
}

pub(super) fn event(stream: &str, position: u128) -> Event {
    Event::new(stream, &format!("{stream}-{position}"), format!("payload {position}")).at(position)
}

/// So many events of one stream, from position 1 on.
pub(super) fn events(stream: &str, count: u128) -> Vec<Event> {
    (1..=count).map(|position| event(stream, position)).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a handler says")]
pub(super) fn fine() -> Handled {
    Ok(Outcome::success("done"))
}

/// Short, so that tests on real time are short.
pub(super) const QUICK: Backoff =
    Backoff { first: Duration::from_millis(5), most: Duration::from_millis(50) };

/// What happened, as the loop told it, and whether it ever should not have.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Written>>);

#[derive(Default)]
pub(super) struct Written {
    /// What happened, one word each: `receipt orders-1`.
    pub(super) steps: Vec<String>,
    delivered: BTreeMap<String, BTreeSet<Position>>,
    settled: BTreeMap<String, BTreeSet<Position>>,
    pub(super) faults: Vec<String>,
    pub(super) offsets: BTreeMap<String, Vec<u128>>,
}

impl Ledger {
    pub(super) fn read(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap()
    }

    /// How often something happened, by the first word.
    pub(super) fn count(&self, word: &str) -> usize {
        self.read().steps.iter().filter(|step| step.split(' ').next() == Some(word)).count()
    }

    pub(super) fn place_of(&self, step: &str) -> Option<usize> {
        self.read().steps.iter().position(|other| other == step)
    }
}

impl Watch for Ledger {
    fn saw(&self, step: &Step<'_>) {
        let mut written = self.read();
        let (word, at) = match step {
            Step::Offset { stream, position } => return written.offset(stream, *position),
            Step::Waiting(_) => return written.steps.push("waiting".into()),
            Step::Delivered(at) => {
                let delivered = written.delivered.entry(at.stream.to_owned()).or_default();
                delivered.extend(at.position);
                ("delivered", *at)
            }
            Step::Effect(at) => ("effect", *at),
            Step::Receipt(at) => ("receipt", *at),
            Step::Duplicate(at) => ("duplicate", *at),
            Step::DeadLetter { at, .. } => ("dead_letter", *at),
            Step::Failed { at, .. } => ("failed", *at),
            Step::Acknowledged(at) => ("acknowledged", *at),
            Step::Busy(at) => ("busy", *at),
            Step::Held(at) => ("held", *at),
            Step::GivenBack(at) => ("given_back", *at),
            Step::Requeued(at) => ("requeued", *at),
            other => panic!("what is {other:?}?"),
        };
        if ["receipt", "duplicate", "dead_letter"].contains(&word) {
            written.settled.entry(at.stream.to_owned()).or_default().extend(at.position);
        }
        written.steps.push(format!("{word} {}", at.key.unwrap_or("none")));
    }
}

impl Written {
    /// An offset must be at nothing, and pass nothing, that was delivered and is not settled.
    fn offset(&mut self, stream: &str, position: Position) {
        self.steps.push(format!("offset {position}"));
        self.offsets.entry(stream.to_owned()).or_default().push(position.get());
        let nothing = BTreeSet::new();
        let settled = self.settled.get(stream).unwrap_or(&nothing);
        let passed = self.delivered.get(stream).unwrap_or(&nothing).range(..=position);
        let open: Vec<_> =
            passed.filter(|passed| !settled.contains(passed)).map(ToString::to_string).collect();
        if !open.is_empty() {
            self.faults.push(format!("{stream} was committed at {position}, before {}", open.join(", ")));
        }
    }
}

/// Waits until something is true, for a while of the test's own time.
pub(super) async fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}
