//! `cargo xtask crash redis`: kills under load, with every way to sync.

use anyhow::{Context, Result};
use test_services::{AppendFsync, Redis};

use super::stage::{Stage, Tolerance};
use crate::crash::fault::Kind;
use crate::crash::victim::Victim;
use crate::progress::Stopwatch;
use xtask::run;

const WHAT: &str = "crash redis";
/// How often the control may miss.
const CONTROL_ROUNDS: u64 = 5;

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    let mut stage = Stage::build(WHAT, rounds, seed)?;
    let mut server = Redis::start(AppendFsync::Always)?;
    let (mut victim, watch) = (stage.load(&server.url())?, Stopwatch::start());
    let rounds = stage.rounds(rounds, |stage, _| crash_once(stage, &mut server, &mut victim))?;
    victim.kill()?;
    stage.verdict(rounds, watch)?;
    drop(server);
    every_second(&stage, rounds)?;
    control(&stage)?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

fn crash_once(stage: &mut Stage, server: &mut Redis, victim: &mut Victim) -> Result<()> {
    stage.live()?;
    server.kill()?;
    victim.look()?;
    server.resume()?;
    stage.until_looked(victim)
}

/// What a server loses that syncs every second, when only its process is killed.
fn every_second(stage: &Stage, rounds: u64) -> Result<()> {
    let mut stage = stage.another("crash redis: everysec", Tolerance::Counted);
    let mut server = Redis::start(AppendFsync::EverySecond)?;
    let mut victim = stage.load(&server.url())?;
    let rounds = stage.rounds(rounds, |stage, _| crash_once(stage, &mut server, &mut victim))?;
    victim.kill()?;
    let (what, tally) = (stage.what, stage.tally());
    println!("{what}: {rounds} kills of the process alone: {tally}");
    println!("{what}: what the process had written survives it, synced or not; a power cut loses more");
    Ok(())
}

/// A server that writes nothing must be found out, or nothing above means anything.
fn control(stage: &Stage) -> Result<()> {
    let mut stage = stage.another("crash redis: control: no append-only file", Tolerance::Counted);
    let mut server = Redis::start_with(&[("appendonly", "no")])?;
    let mut victim = stage.load(&server.url()).context("a Redis without a file was refused")?;
    let (lost, rounds) =
        stage.until_lost(CONTROL_ROUNDS, |stage, _| crash_once(stage, &mut server, &mut victim))?;
    let doubled = stage.tally().count(Kind::Doubled);
    println!("{}: {lost} found lost after {rounds} kills, {doubled} doubled", stage.what);
    victim.kill()
}
