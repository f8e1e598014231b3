//! Every step of the consumer, and the one at which it dies.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use semel_stream::{Step, Watch};
use tokio::sync::Notify;

/// A step after which it may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// An event was delivered.
    Delivered,
    /// It was claimed, and its handler began.
    Claimed,
    /// Its effect happened, and nothing else.
    Effect,
    /// Its receipt is written.
    Receipt,
    /// The offset is committed.
    Offset,
    /// The source knows.
    Acknowledged,
    /// Whatever happens then.
    Anytime,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "delivered" => Self::Delivered,
            "claimed" => Self::Claimed,
            "effect" => Self::Effect,
            "receipt" => Self::Receipt,
            "offset" => Self::Offset,
            "acknowledged" => Self::Acknowledged,
            "anytime" => Self::Anytime,
            _ => return Err(format!("`{word}` is no step")),
        })
    }
}

/// Where it dies: the step, and how often it happens first; or so many microseconds after it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    point: Point,
    number: u64,
}

impl FromStr for Fate {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        let (point, number) = words.split_once(':').ok_or("say STEP:NUMBER")?;
        let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
        Ok(Self { point: point.parse()?, number })
    }
}

/// Watches the consumer.
pub(crate) struct Steps {
    fate: Option<Fate>,
    times: AtomicU64,
    events: u64,
    known: Mutex<Known>,
    news: Notify,
}

#[derive(Default)]
struct Known {
    done: BTreeSet<Box<str>>,
    held: BTreeSet<Box<str>>,
}

impl Steps {
    /// With the events that are done already.
    pub(crate) fn new(fate: Option<Fate>, events: u64, done: BTreeSet<Box<str>>) -> Self {
        let known = Mutex::new(Known { done, held: BTreeSet::new() });
        Self { fate, times: AtomicU64::new(0), events, known, news: Notify::new() }
    }

    /// From now on it may die at any time, if that is its fate.
    pub(crate) fn begin(&self) {
        if let Some(Fate { point: Point::Anytime, number }) = self.fate {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(number));
                die();
            });
        }
    }

    /// This step happened once more.
    pub(crate) fn at(&self, point: Point) {
        let Some(fate) = self.fate.filter(|fate| fate.point == point) else { return };
        if self.times.fetch_add(1, Ordering::SeqCst).saturating_add(1) >= fate.number {
            die();
        }
    }

    /// Until every event is done or held.
    pub(crate) async fn until_settled(&self) {
        loop {
            let news = self.news.notified();
            let settled = {
                let known = self.locked();
                known.done.union(&known.held).count()
            };
            if settled as u64 >= self.events {
                return;
            }
            news.await;
        }
    }

    pub(crate) fn is_any_held(&self) -> bool {
        let known = self.locked();
        known.held.difference(&known.done).next().is_some()
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, key: Option<&str>) {
        self.locked().done.extend(key.map(Into::into));
        self.news.notify_one();
    }
}

impl Watch for Steps {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nobody dies of the other steps")]
    fn saw(&self, step: &Step<'_>) {
        match step {
            Step::Delivered(_) => self.at(Point::Delivered),
            Step::Effect(_) => self.at(Point::Effect),
            Step::Receipt(at) => {
                self.at(Point::Receipt);
                self.is_done(at.key);
            }
            Step::Duplicate(at) => self.is_done(at.key),
            Step::Offset { .. } => self.at(Point::Offset),
            Step::Acknowledged(_) => self.at(Point::Acknowledged),
            Step::Held(at) => {
                self.locked().held.extend(at.key.map(Into::into));
                self.news.notify_one();
            }
            Step::Waiting(error) => eprintln!("it waits: {error}"),
            _ => {}
        }
    }
}

/// `kill -9`, by its own hand: between this step and the next there is nothing that could still happen.
fn die() {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}
