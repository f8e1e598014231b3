//! Which store, which source, which handler.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use test_services::{Nats, Postgres, RabbitMq};

use super::play;
use crate::crash::place;
use crate::dice::Dice;

/// Where records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    File,
    Postgres,
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A file of lines: read by one, from the committed offset on.
    Lines,
    /// Shared: the broker knows what was acknowledged, and the offset follows it.
    Nats,
    /// Shared, and without offsets.
    RabbitMq,
}

/// What an effect is, and what the lapse of a lease means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// A line in a file; a lapsed run is run again.
    Rerun,
    /// The same; a lapsed run is held until somebody has looked.
    Hold,
    /// A row in PostgreSQL, in the transaction of its receipt.
    Transaction,
}

/// What a control does in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    CommitFirst,
    AcknowledgeFirst,
    Apart,
}

/// One store, one source, one handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) source: Source,
    pub(super) handler: Handler,
    pub(super) sabotage: Option<Sabotage>,
}

impl Scene {
    /// All that there are.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for store in [Store::File, Store::Postgres] {
            for source in [Source::Lines, Source::Nats, Source::RabbitMq] {
                for handler in [Handler::Rerun, Handler::Hold, Handler::Transaction] {
                    // A transaction is where the records are.
                    if handler != Handler::Transaction || store == Store::Postgres {
                        all.push(Self { store, source, handler, sabotage: None });
                    }
                }
            }
        }
        all
    }

    /// Those that must be found out.
    pub(super) fn controls() -> [Self; 4] {
        let control =
            |store, source, handler, sabotage| Self { store, source, handler, sabotage: Some(sabotage) };
        [
            control(Store::File, Source::Lines, Handler::Rerun, Sabotage::CommitFirst),
            control(Store::File, Source::Nats, Handler::Rerun, Sabotage::AcknowledgeFirst),
            control(Store::File, Source::RabbitMq, Handler::Rerun, Sabotage::AcknowledgeFirst),
            control(Store::Postgres, Source::Lines, Handler::Transaction, Sabotage::Apart),
        ]
    }

    /// The steps that happen here.
    pub(super) fn points(self) -> Vec<Point> {
        let has_offsets = self.source != Source::RabbitMq;
        Point::ALL.into_iter().filter(|point| has_offsets || *point != Point::Offset).collect()
    }
}

impl Handler {
    /// What the victim is told: what an effect is, and what a lapse means.
    pub(super) const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Rerun => ["plain", "rerun"],
            Self::Hold => ["plain", "hold"],
            Self::Transaction => ["transaction", "rerun"],
        }
    }
}

impl Sabotage {
    /// The victim's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::CommitFirst => "commit-first",
            Self::AcknowledgeFirst => "acknowledge-first",
            Self::Apart => "apart",
        }
    }
}

impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CommitFirst => "committing the offset first",
            Self::AcknowledgeFirst => "acknowledging first",
            Self::Apart => "the effect beside the transaction",
        })
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::Lines => "lines",
            Source::Nats => "NATS",
            Source::RabbitMq => "RabbitMQ",
        })?;
        f.write_str(match self.store {
            Store::File => " on the file store, ",
            Store::Postgres => " on PostgreSQL, ",
        })?;
        f.write_str(match self.handler {
            Handler::Rerun => "rerun",
            Handler::Hold => "hold",
            Handler::Transaction => "in one transaction",
        })
    }
}

/// How many times a step happens before the one that is the last, at most.
const TIMES_MOST: u64 = 4;
/// When at the latest a victim dies that may die at any time, in microseconds.
const ANYTIME_MOST: u64 = 100_000;

/// A step after which the victim dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    Delivered,
    Claimed,
    Effect,
    Receipt,
    Offset,
    Acknowledged,
    Anytime,
}

impl Point {
    /// All, in the order in which they happen to an event.
    pub(super) const ALL: [Self; 7] = [
        Self::Delivered,
        Self::Claimed,
        Self::Effect,
        Self::Receipt,
        Self::Offset,
        Self::Acknowledged,
        Self::Anytime,
    ];

    /// The victim's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Claimed => "claimed",
            Self::Effect => "effect",
            Self::Receipt => "receipt",
            Self::Offset => "offset",
            Self::Acknowledged => "acknowledged",
            Self::Anytime => "anytime",
        }
    }

    /// When, as the victim is told.
    pub(super) fn fate(self, dice: &mut Dice) -> String {
        let number = match self {
            Self::Anytime => dice.number(ANYTIME_MOST),
            Self::Delivered
            | Self::Claimed
            | Self::Effect
            | Self::Receipt
            | Self::Offset
            | Self::Acknowledged => 1 + dice.number(TIMES_MOST - 1),
        };
        format!("{}:{number}", self.word())
    }
}

/// Hands out steps. Each is out once before any is out a second time.
pub(super) struct Deck {
    points: Vec<Point>,
    left: Vec<Point>,
}

impl Deck {
    pub(super) fn of(points: Vec<Point>) -> Self {
        Self { points, left: Vec::new() }
    }

    /// The next one. It stays the next until the victim has died of it.
    pub(super) fn next(&mut self, dice: &mut Dice) -> Option<Point> {
        if self.left.is_empty() {
            self.left = self.points.clone();
            dice.shuffle(&mut self.left);
        }
        self.left.last().copied()
    }

    /// The victim has died of it.
    pub(super) fn died(&mut self) {
        self.left.pop();
    }
}

/// Everything there is to a proof, started once.
pub(super) struct World {
    pub(super) program: PathBuf,
    pub(super) place: place::Place,
    pub(super) postgres: Postgres,
    pub(super) nats: Nats,
    pub(super) rabbitmq: RabbitMq,
}

impl World {
    pub(super) fn build(program: PathBuf) -> Result<Self> {
        let world = Self {
            program,
            place: place::Place::take()?,
            // The processes die, and no machine.
            postgres: Postgres::start_in_memory(&[])?,
            nats: Nats::start()?,
            rabbitmq: RabbitMq::start()?,
        };
        play::prepare(&world)?;
        Ok(world)
    }

    pub(super) fn folder(&self) -> &Path {
        self.place.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_as_often_as_any_other() {
        let (mut deck, mut dice) = (Deck::of(Point::ALL.to_vec()), Dice::new(7));
        let mut times = [0; 7];
        for _ in 0..70 {
            let point = deck.next(&mut dice).unwrap();
            assert_eq!(deck.next(&mut dice), Some(point), "nobody died of it yet");
            times[Point::ALL.iter().position(|other| *other == point).unwrap()] += 1;
            deck.died();
        }
        assert_eq!(times, [10; 7]);
    }
}
