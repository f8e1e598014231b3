//! `cargo xtask crash failover`: the primary is killed under load, and its standby takes over.

use anyhow::Result;
use test_services::{Link, Postgres, Standby};

use super::stage::{Stage, Tolerance};
use crate::progress::Stopwatch;
use xtask::run;

const WHAT: &str = "crash failover";
/// How often the control may miss.
const CONTROL_ROUNDS: u64 = 20;

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    let mut stage = Stage::build(WHAT, rounds, seed)?;
    let mut primary = Postgres::start_in_memory(&[])?;
    let watch = Stopwatch::start();
    let rounds = stage.rounds(rounds, |stage, _| fail_over(stage, &mut primary, Standby::Synchronous))?;
    stage.verdict(rounds, watch)?;
    drop(primary);
    control(&stage)?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

/// One failover; the standby is the primary afterwards. An asynchronous standby is cut off for a while before the kill: on
/// one machine it would else have everything at nearly every moment.
fn fail_over(stage: &mut Stage, primary: &mut Postgres, kind: Standby) -> Result<()> {
    let link = Link::to(primary.port())?;
    let mut standby = primary.standby_over(&link, kind)?;
    let mut victim = stage.load(&Postgres::url_of_either(primary.port(), standby.port()))?;
    stage.live()?;
    if kind == Standby::Asynchronous {
        link.freeze();
        stage.live()?;
    }
    primary.kill()?;
    victim.look()?;
    standby.promote()?;
    stage.until_looked(&mut victim)?;
    victim.kill()?;
    *primary = standby;
    Ok(())
}

/// A standby that the primary does not wait for must be found to lack something, or nothing above means anything.
fn control(stage: &Stage) -> Result<()> {
    let mut stage = stage.another("crash failover: control: an asynchronous standby", Tolerance::Counted);
    let mut primary = Postgres::start_in_memory(&[])?;
    let (lost, rounds) =
        stage.until_lost(CONTROL_ROUNDS, |stage, _| fail_over(stage, &mut primary, Standby::Asynchronous))?;
    println!("{}: {lost} found lost after {rounds} failovers", stage.what);
    Ok(())
}
