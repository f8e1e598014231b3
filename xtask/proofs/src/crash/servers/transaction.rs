//! `cargo xtask crash transaction`: the process dies between the effect and the commit of its record.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use test_services::Postgres;

use crate::crash::victim::{self, Profile};
use crate::dice::Dice;
use crate::progress::Progress;
use xtask::{needs, run};

const WHAT: &str = "crash transaction";
/// How long a process lives after its first words, at most.
const LIFE_MOST: Duration = Duration::from_millis(40);
/// How often the control may miss.
const CONTROL_KILLS: u64 = 100;

/// Effects without a record, and records without their effect.
const DISAGREEMENTS: &str = "SELECT count(*) FROM charges c \
     FULL JOIN (SELECT name FROM semel_records WHERE state = 'done') d USING (name) \
     WHERE c.name IS NULL OR d.name IS NULL";

pub(in crate::crash) fn run(kills: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    let program = victim::build(Profile::for_rounds(kills))?;
    run::started(&format!("{WHAT}: {kills} kills, seed {seed}"));
    let mut dice = Dice::new(seed);
    let server = bank()?;
    let progress = Progress::new(WHAT, kills);
    for _ in 0..kills {
        kill_once(&program, &server, &[], &mut dice)?;
        ensure!(disagreements(&server)? == 0, "{WHAT}: effect and record disagree; seed {seed}");
        progress.step();
    }
    let charged = server.ask("SELECT count(*) FROM charges")?;
    let unsettled = server.ask("SELECT count(*) FROM semel_records WHERE state = 'running'")?;
    println!(
        "{WHAT}: {kills} kills, {charged} effects and as many records, {unsettled} runs cut off: 0 disagree"
    );
    drop(progress);
    control(&program, &mut dice)?;
    run::passed(&format!("{WHAT}: {kills} kills without a fault"));
    Ok(())
}

/// Completing beside the transaction must be found out, or nothing above means anything.
fn control(program: &Path, dice: &mut Dice) -> Result<()> {
    let server = bank()?;
    for kill in 1..=CONTROL_KILLS {
        kill_once(program, &server, &["--apart"], dice)?;
        let found = disagreements(&server)?;
        if found > 0 {
            println!(
                "{WHAT}: control: completing beside the transaction: {found} disagree after {kill} kills"
            );
            return Ok(());
        }
    }
    bail!("{WHAT}: control: {CONTROL_KILLS} kills beside the transaction, and nothing disagreed")
}

/// A server with semel's tables and one for effects.
fn bank() -> Result<Postgres> {
    let server = Postgres::start_in_memory(&[])?;
    tokio::runtime::Runtime::new()?.block_on(semel_postgres::migrate(&server.url()))?;
    server.ask("CREATE TABLE charges (name text NOT NULL)")?;
    Ok(server)
}

fn kill_once(program: &Path, server: &Postgres, args: &[&str], dice: &mut Dice) -> Result<()> {
    let mut child = Command::new(program)
        .args(["victim", "transaction", &server.url()])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().context("it has an output")?);
    output.read_line(&mut said)?;
    std::thread::sleep(dice.instant(LIFE_MOST));
    child.kill()?;
    child.wait()?;
    ensure!(said.trim() == "ready", "{WHAT}: the victim did not start: {said}");
    // What the dead process left to the server is over once its sessions are.
    while server.ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")? != "1" {}
    Ok(())
}

fn disagreements(server: &Postgres) -> Result<u64> {
    Ok(server.ask(DISAGREEMENTS)?.parse()?)
}
