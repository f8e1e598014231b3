//! One scene: the victim is started again and again until it has died often enough, and then it may finish.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::batch::Batch;
use super::deck::{Deck, Point};
use super::judge::{self, Faults};
use super::life::{Ended, Life};
use super::look::Look;
use super::scene::{Scene, Source};
use super::world::World;
use crate::dice::Dice;
use crate::stopwatch::Stopwatch;

/// How many events a batch has for each death that is still to come: so many that a victim seldom runs out of them.
const EVENTS_PER_KILL: u64 = 3;
const EVENTS_LEAST: u64 = 20;
const EVENTS_MOST: u64 = 200;
/// A victim that ends so often in a row without anything being over never gets there.
const IDLE_MOST: u32 = 40;
/// How long a broker may take to have back what a dead connection held.
const PATIENCE: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A scene that is played.
pub(super) struct Play<'a> {
    world: &'a World,
    scene: Scene,
    name: String,
    dice: Dice,
    deck: Deck,
    pub(super) tally: Tally,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: u64,
    /// After which step how many of them.
    pub(super) points: BTreeMap<Point, u64>,
    batches: u64,
    events: u64,
    deliveries: u64,
    effects: u64,
    /// Events that were held: their effect had happened.
    held_done: u64,
    /// Events that were held: it had not.
    held_released: u64,
}

impl<'a> Play<'a> {
    pub(super) fn new(world: &'a World, scene: Scene, number: usize, seed: u64) -> Self {
        let deck = Deck::of(scene.points());
        let dice = Dice::new(seed.wrapping_add(number as u64));
        Self { world, scene, name: format!("scene-{number}"), dice, deck, tally: Tally::default() }
    }

    /// Kills so often, and says what was found wrong; everything stops at the first death that shows something.
    pub(super) fn play(&mut self, kills: u64, step: &(dyn Fn() + Sync)) -> Result<Faults> {
        while self.tally.kills < kills {
            let faults = self.batch(kills, step)?;
            if !faults.is_empty() {
                return Ok(faults);
            }
        }
        Ok(Vec::new())
    }

    /// One batch of events, to its end.
    fn batch(&mut self, kills: u64, step: &(dyn Fn() + Sync)) -> Result<Faults> {
        self.tally.batches += 1;
        let name = format!("{}-{}", self.name, self.tally.batches);
        let events = (EVENTS_PER_KILL * (kills - self.tally.kills)).clamp(EVENTS_LEAST, EVENTS_MOST);
        let batch = Batch::publish(self.world, self.scene, &name, events, &mut self.dice)?;
        let mut idle = 0;
        loop {
            let point = if self.tally.kills < kills { self.deck.next(&mut self.dice) } else { None };
            let fate = point.map(|point| point.fate(&mut self.dice));
            let mut life = Life::start(self.world, self.scene, &batch, fate.as_deref())?;
            let mut look = life.look()?;
            look.read_effects(&batch.effects)?;
            let mut faults = judge::after_death(self.scene.handler, &batch.stream, &look);
            let left = self.left(&mut life, &batch, &look, &mut faults)?;
            if !faults.is_empty() {
                return Ok(faults);
            }
            if self.is_over(&batch, &look, left) {
                life.say("end")?;
                life.end()?;
                self.tally.add(&batch, &look);
                batch.remove()?;
                return Ok(faults);
            }
            self.resolve(&mut life, &look)?;
            life.say("go")?;
            match life.end()? {
                Ended::Killed => {
                    let point = point.context("somebody else kills victims")?;
                    self.deck.died();
                    self.tally.kills += 1;
                    *self.tally.points.entry(point).or_default() += 1;
                    idle = 0;
                    step();
                }
                Ended::ByItself => idle += 1,
            }
            if idle > IDLE_MOST {
                bail!("{}: the victim ends, and something is left: {look:?}, {left:?} left", self.scene);
            }
        }
    }

    /// How many deliveries the broker still has. It may have let go of no more than have receipts.
    fn left(&self, life: &mut Life, batch: &Batch, look: &Look, faults: &mut Faults) -> Result<Option<u64>> {
        if self.scene.source == Source::Lines {
            return Ok(None);
        }
        let (deliveries, watch) = (batch.stream.len() as u64, Stopwatch::start());
        let most = judge::acknowledged_most(&batch.stream, look);
        loop {
            let left = life.left()?;
            if deliveries.saturating_sub(left) <= most {
                return Ok(Some(left));
            }
            if watch.elapsed() > PATIENCE || self.scene.source == Source::Nats {
                let gone = deliveries.saturating_sub(left);
                faults.push(format!(
                    "{gone} deliveries are acknowledged, and {most} are of events with receipts"
                ));
                return Ok(Some(left));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Whether every event has its receipt, and the source knows.
    fn is_over(&self, batch: &Batch, look: &Look, left: Option<u64>) -> bool {
        let is_known = match self.scene.source {
            Source::Lines => look.offset == batch.end(),
            Source::Nats | Source::RabbitMq => left == Some(0),
        };
        is_known && judge::is_done(&batch.stream, look)
    }

    /// Looks whether the effect of what is held has happened, as a person would, and says so.
    fn resolve(&mut self, life: &mut Life, look: &Look) -> Result<()> {
        for event in look.held() {
            if look.effects_of(event).is_empty() {
                self.tally.held_released += 1;
                life.say(&format!("release {event}"))?;
            } else {
                self.tally.held_done += 1;
                life.say(&format!("done {event}"))?;
            }
        }
        Ok(())
    }
}

impl Tally {
    fn add(&mut self, batch: &Batch, look: &Look) {
        self.events += batch.events;
        self.deliveries += batch.stream.len() as u64;
        self.effects += look.effects.values().map(|effects| effects.len() as u64).sum::<u64>();
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = self.effects.saturating_sub(self.events);
        write!(
            f,
            "{} kills, {} events in {} deliveries, {} effects",
            self.kills, self.events, self.deliveries, self.effects
        )?;
        if again > 0 {
            write!(f, ", {again} of them again, by a later attempt")?;
        }
        if self.held_done + self.held_released > 0 {
            write!(
                f,
                "; {} were held: {} had their effect, {} were released",
                self.held_done + self.held_released,
                self.held_done,
                self.held_released
            )?;
        }
        Ok(())
    }
}
