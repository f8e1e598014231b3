//! One scene: the victim is started again and again until it has died often enough, and then it may finish.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::run::program;

use super::judge::Look;
use super::judge::{self, Faults};
use super::proof::Batch;
use super::scene::World;
use super::scene::{Deck, Point};
use super::scene::{Scene, Source};
use crate::dice::Dice;
use crate::progress::Stopwatch;

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

const SIGKILL: i32 = 9;

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Killed,
    /// There was nothing more that it could do.
    ByItself,
}

/// A victim that lives.
pub(super) struct Life {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    complaints: PathBuf,
}

impl Life {
    /// Starts a victim that dies as told, if at all.
    pub(super) fn start(world: &World, scene: Scene, batch: &Batch, fate: Option<&str>) -> Result<Self> {
        let [handler, lapse] = scene.handler.words();
        let mut command = Command::new(&world.program);
        command.args(["run", "--store", &batch.store, "--origin", &batch.origin]);
        command.args(["--pipeline", &batch.pipeline, "--events", &batch.events.to_string()]);
        command.args(["--handler", handler, "--lapse", lapse, "--effects"]).arg(&batch.effects);
        command.args(fate.iter().flat_map(|fate| ["--fate", fate]));
        command.args(scene.sabotage.iter().flat_map(|sabotage| ["--sabotage", sabotage.word()]));
        let complaints = OpenOptions::new().create(true).append(true).open(&batch.complaints)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut child = command.spawn().context("cannot start the victim")?;
        let input = child.stdin.take().context("a victim that does not listen")?;
        let output = child.stdout.take().context("a victim without a voice")?;
        Ok(Self { child, input, output: BufReader::new(output), complaints: batch.complaints.clone() })
    }

    /// What it finds.
    pub(super) fn look(&mut self) -> Result<Look> {
        let mut look = Look::default();
        while look.hear(self.line()?.trim_end())? {}
        Ok(look)
    }

    /// How many deliveries the broker does not know to be processed.
    pub(super) fn left(&mut self) -> Result<u64> {
        self.say("left")?;
        let line = self.line()?;
        let left = line.trim_end().strip_prefix("left ").context("a victim that does not answer")?;
        Ok(left.parse()?)
    }

    pub(super) fn say(&mut self, words: &str) -> Result<()> {
        writeln!(self.input, "{words}").context("a victim that does not listen")
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Result<Ended> {
        let status = self.child.wait().context("cannot wait for a victim")?;
        match status.signal() {
            Some(SIGKILL) => Ok(Ended::Killed),
            _ if status.success() => Ok(Ended::ByItself),
            _ => bail!("a victim failed ({status}): {}", self.complaint()),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("a victim ended before it was told to: {}", self.complaint());
        }
        Ok(line)
    }

    fn complaint(&self) -> String {
        let said = fs::read_to_string(&self.complaints).unwrap_or_default();
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // On the way out of an error, nothing may be left running. Whoever is dead already does not mind.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Publishes every line of a file.
pub(super) fn publish(world: &World, origin: &str, file: &Path) -> Result<()> {
    program(&world.program, [Path::new("publish"), Path::new(origin), file]).quietly()
}

/// Makes the tables in PostgreSQL.
pub(super) fn prepare(world: &World) -> Result<()> {
    program(&world.program, ["prepare", &world.postgres.url()]).quietly()
}
