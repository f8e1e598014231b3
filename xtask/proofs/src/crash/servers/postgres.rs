//! `cargo xtask crash postgres`: immediate stops and kills under load.

use std::time::Duration;

use anyhow::Result;
use test_services::Postgres;

use super::stage::{Stage, Tolerance};
use crate::crash::victim::Victim;
use crate::progress::Stopwatch;
use xtask::run;

const WHAT: &str = "crash postgres";
/// In so many rounds of a hundred the callers wait for the look while the server is still down.
const LOOKED_DOWN_PERCENT: usize = 50;
/// In the others they go on for so long first, at most.
const BEFORE_LOOK_MOST: Duration = Duration::from_millis(30);
/// How often the control may miss.
const CONTROL_ROUNDS: u64 = 20;

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    let mut stage = Stage::build(WHAT, rounds, seed)?;
    let mut server = Postgres::start_in_memory(&[])?;
    let (mut victim, watch) = (stage.load(&server.url())?, Stopwatch::start());
    let rounds = stage.rounds(rounds, |stage, round| crash_once(stage, &mut server, &mut victim, round))?;
    victim.kill()?;
    stage.verdict(rounds, watch)?;
    drop(server);
    control(&stage)?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

fn crash_once(stage: &mut Stage, server: &mut Postgres, victim: &mut Victim, round: u64) -> Result<()> {
    stage.live()?;
    if round.is_multiple_of(2) {
        server.stop_immediately()?;
    } else {
        server.kill()?;
    }
    if stage.dice.happens(LOOKED_DOWN_PERCENT) {
        victim.look()?;
        server.resume()?;
    } else {
        server.resume()?;
        std::thread::sleep(stage.dice.instant(BEFORE_LOOK_MOST));
        victim.look()?;
    }
    stage.until_looked(victim)
}

/// A server that acknowledges before it writes must be found out, or nothing above means anything. It writes late too, so
/// that a kill hits something.
fn control(stage: &Stage) -> Result<()> {
    let mut stage = stage.another("crash postgres: control: synchronous_commit = off", Tolerance::Counted);
    let mut server =
        Postgres::start_in_memory(&[("synchronous_commit", "off"), ("wal_writer_delay", "10s")])?;
    let mut victim = stage.load(&format!("{}?durability=as-configured", server.url()))?;
    // The schema was acknowledged before it was written too, and must outlive the first kill.
    server.ask("CHECKPOINT")?;
    let (lost, rounds) = stage.until_lost(CONTROL_ROUNDS, |stage, _| {
        stage.live()?;
        server.kill()?;
        victim.look()?;
        server.resume()?;
        stage.until_looked(&mut victim)
    })?;
    println!("{}: {lost} found lost after {rounds} kills", stage.what);
    victim.kill()
}
