//! The scenes, and the controls that must be found out.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};

use super::deck::Point;
use super::play::Play;
use super::scene::{Scene, Store};
use super::world::World;
use crate::crash::victim::{self, Profile};
use crate::progress::Progress;
use crate::stopwatch::Stopwatch;
use xtask::{needs, run};

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
