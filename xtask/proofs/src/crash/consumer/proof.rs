//! The scenes, and the controls that must be found out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use xtask::{needs, run};

use super::judge::Place;
use super::play;
use super::play::Play;
use super::scene::Point;
use super::scene::World;
use super::scene::{Scene, Source, Store};
use crate::crash::victim::{self, Profile};
use crate::dice::Dice;
use crate::progress::{Progress, Stopwatch};

const WHAT: &str = "crash consumer";
/// How often a control may miss.
const CONTROL_KILLS: u64 = 60;
/// So many faults of one death are enough to see what is wrong.
const FAULTS_MOST: usize = 20;

/// Kills consumers so often in all.
pub(in crate::crash) fn run(kills: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    let program = victim::build_consumer(Profile::for_rounds(kills))?;
    run::started(&format!("{WHAT}: {kills} kills, seed {seed}"));
    let mut world = World::build(program)?;
    let watch = Stopwatch::start();
    let done = scenes(&world, kills, seed);
    let rate = watch.rate(kills);
    let done = done.and_then(|points| controls(&world, seed).map(|()| points));
    if done.is_err() {
        world.place.keep();
    }
    let after: Vec<_> = done?.iter().map(|(point, times)| format!("{times} {}", point.word())).collect();
    println!("{WHAT}: {kills} kills, {rate:.1} a second, by the step before them: {}", after.join(", "));
    run::passed(&format!("{WHAT}: {kills} kills without a fault; seed {seed}"));
    Ok(())
}

/// After which step how many victims died.
type Points = BTreeMap<Point, u64>;

/// All scenes, those of one store beside those of the other.
fn scenes(world: &World, kills: u64, seed: u64) -> Result<Points> {
    let all: Vec<_> = Scene::all().into_iter().enumerate().collect();
    let share = |number: usize| {
        let (scenes, number) = (all.len() as u64, number as u64);
        kills / scenes + u64::from(number < kills % scenes)
    };
    let (progress, share) = (Progress::new(WHAT, kills), &share);
    let (file, postgres): (Vec<_>, Vec<_>) = all.iter().partition(|(_, scene)| scene.store == Store::File);
    std::thread::scope(|scope| {
        let lanes = [file, postgres].map(|scenes: Vec<&(usize, Scene)>| {
            let progress = &progress;
            scope.spawn(move || {
                let play = |(number, scene): &(usize, Scene)| {
                    scene_of(world, *scene, *number, share(*number), seed, progress)
                };
                scenes.into_iter().map(play).collect::<Result<Vec<_>>>()
            })
        });
        let mut sum = Points::new();
        for lane in lanes {
            for (point, times) in lane.join().map_err(|_| anyhow!("a lane fell over"))??.into_iter().flatten()
            {
                *sum.entry(point).or_default() += times;
            }
        }
        Ok(sum)
    })
}

fn scene_of(
    world: &World,
    scene: Scene,
    number: usize,
    kills: u64,
    seed: u64,
    progress: &Progress,
) -> Result<Points> {
    let mut play = Play::new(world, scene, number, seed);
    let faults = play.play(kills, &|| progress.step())?;
    for fault in faults.iter().take(FAULTS_MOST) {
        progress.aside(|| run::failed(&format!("{scene}: {fault}")));
    }
    ensure!(
        faults.is_empty(),
        "{WHAT}: {scene}: {} faults after {} kills; seed {seed}",
        faults.len(),
        play.tally.kills
    );
    progress.aside(|| run::passed(&format!("{scene}: {}", play.tally)));
    Ok(play.tally.points)
}

/// Consumers that do it in the wrong order must be found out, or nothing above means anything.
fn controls(world: &World, seed: u64) -> Result<()> {
    for (number, control) in (Scene::all().len()..).zip(Scene::controls()) {
        let Some(sabotage) = control.sabotage else { continue };
        let mut play = Play::new(world, control, number, seed);
        let faults = play.play(CONTROL_KILLS, &|| ())?;
        let Some(fault) = faults.first() else {
            bail!(
                "{WHAT}: control: {sabotage}, {control}: not found out in {CONTROL_KILLS} kills; seed {seed}"
            );
        };
        let kills = play.tally.kills;
        run::passed(&format!("control: {sabotage}, {control}: found out after {kills} kills: {fault}"));
    }
    Ok(())
}

/// So many of a hundred events are followed by one that was there before.
const DUPLICATES_PERCENT: usize = 20;

/// Events that a pipeline of their own processes.
pub(super) struct Batch {
    pub(super) events: u64,
    /// Every delivery, in order.
    pub(super) stream: Vec<Place>,
    /// A folder, or the URL of a server.
    pub(super) store: String,
    /// A file, or where the events were published to.
    pub(super) origin: String,
    pub(super) pipeline: String,
    /// Where plain effects go.
    pub(super) effects: PathBuf,
    /// Where victims complain.
    pub(super) complaints: PathBuf,
}

impl Batch {
    /// Publishes so many events, and some of them again.
    pub(super) fn publish(
        world: &World,
        scene: Scene,
        name: &str,
        events: u64,
        dice: &mut Dice,
    ) -> Result<Self> {
        let folder = world.folder().join(name);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file = folder.join("events.jsonl");
        let (text, stream) = written(scene.source, &order(events, dice));
        fs::write(&file, text)?;
        let origin = match scene.source {
            Source::Lines => file.display().to_string(),
            Source::Nats => format!("{}/{name}", world.nats.url()),
            Source::RabbitMq => format!("{}#{name}", world.rabbitmq.url()),
        };
        if scene.source != Source::Lines {
            play::publish(world, &origin, &file)?;
        }
        let store = match scene.store {
            Store::File => folder.join("store").display().to_string(),
            Store::Postgres => world.postgres.url(),
        };
        let (effects, complaints) = (folder.join("effects"), folder.join("complaints"));
        Ok(Self { events, stream, store, origin, pipeline: name.to_owned(), effects, complaints })
    }

    /// Everything about it is fine, and in the way.
    pub(super) fn remove(&self) -> Result<()> {
        let folder = self.effects.parent().context("a batch without a folder")?;
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
    }

    /// Where the stream ends.
    pub(super) fn end(&self) -> Option<u64> {
        self.stream.last().map(|place| place.position)
    }
}

/// Which event each delivery is of.
fn order(events: u64, dice: &mut Dice) -> Vec<u64> {
    let mut order = Vec::new();
    for event in 0..events {
        order.push(event);
        if dice.happens(DUPLICATES_PERCENT) {
            order.push(dice.number(event));
        }
    }
    order
}

/// The lines of a stream, and where each of them ends.
fn written(source: Source, order: &[u64]) -> (String, Vec<Place>) {
    let (mut text, mut stream) = (String::new(), Vec::new());
    for (line, event) in (1..).zip(order) {
        text.extend(["{\"id\":", &event.to_string(), "}\n"]);
        let position = match source {
            Source::Lines => text.len() as u64,
            Source::Nats | Source::RabbitMq => line,
        };
        stream.push(Place { event: *event, position });
    }
    (text, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_every_event_and_some_of_them_again() {
        let order = order(200, &mut Dice::new(3));
        assert!((0..200).all(|event| order.contains(&event)));
        assert!(order.len() > 210 && order.len() < 290, "{}", order.len());
        let (text, stream) = written(Source::Lines, &order);
        assert_eq!(stream.last().map(|place| place.position), Some(text.len() as u64));
        assert_eq!(text.lines().count(), stream.len());
        assert_eq!(written(Source::Nats, &order).1.last().unwrap().position, order.len() as u64);
    }
}
