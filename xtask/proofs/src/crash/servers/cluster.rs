//! `cargo xtask crash cluster`: a master is killed under load, and its replica takes over. What is lost is counted.

use std::time::Duration;

use anyhow::Result;
use test_services::{AppendFsync, RedisCluster};

use super::stage::{Stage, Tolerance};
use crate::crash::fault::Kind;
use crate::crash::victim::Victim;
use crate::progress::Stopwatch;
use xtask::run;

const WHAT: &str = "crash cluster";
const MASTERS: u64 = 3;

/// What the failovers were like.
#[derive(Default)]
struct Failovers {
    /// How many records lost something, failover by failover.
    lost: Vec<usize>,
    /// How long before the kill the oldest of that was acknowledged.
    window: Option<Duration>,
    /// From the kill until everything could be read again.
    outages: Vec<Duration>,
}

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    let mut stage = Stage::build(WHAT, rounds, seed)?.another(WHAT, Tolerance::Counted);
    // Synced before every answer: what is lost is lost by the failover alone.
    let mut cluster = RedisCluster::start(AppendFsync::Always)?;
    let (mut victim, mut failovers) = (stage.load(&cluster.url())?, Failovers::default());
    let rounds = stage.rounds(rounds, |stage, round| {
        let n = usize::try_from(round % MASTERS)?;
        fail_over(stage, &mut cluster, &mut victim, n, &mut failovers)
    })?;
    victim.kill()?;
    failovers.print(&stage, rounds);
    run::passed(&format!("{WHAT}: {rounds} failovers counted"));
    Ok(())
}

fn fail_over(
    stage: &mut Stage,
    cluster: &mut RedisCluster,
    victim: &mut Victim,
    n: usize,
    failovers: &mut Failovers,
) -> Result<()> {
    stage.live()?;
    let known = stage.ledger.lock().tally.faults.len();
    let killed = Stopwatch::start();
    cluster.kill_master(n)?;
    victim.look()?;
    stage.until_looked(victim)?;
    failovers.outages.push(killed.elapsed());
    let tally = stage.tally();
    let lost = || tally.faults.iter().skip(known).filter(|fault| fault.kind == Kind::Lost);
    failovers.lost.push(lost().count());
    let before = lost().filter_map(|fault| Some(fault.heard?.elapsed().saturating_sub(killed.elapsed())));
    failovers.window = before.chain(failovers.window).max();
    cluster.resume(n)
}

impl Failovers {
    fn print(&mut self, stage: &Stage, rounds: u64) {
        println!("{WHAT}: {rounds} failovers: {}", stage.tally());
        let (lost, most) = (self.lost.iter().sum::<usize>(), self.lost.iter().max().copied().unwrap_or(0));
        println!("{WHAT}: {lost} records lost something acknowledged, at most {most} in one failover");
        if let Some(window) = self.window {
            let millis = window.as_millis();
            println!("{WHAT}: the oldest of it was acknowledged {millis} ms before the kill");
        }
        self.outages.sort();
        let middle = self.outages.get(self.outages.len() / 2).copied().unwrap_or_default();
        let longest = self.outages.last().copied().unwrap_or_default();
        println!(
            "{WHAT}: all slots were served again after {} ms (median), {} ms (longest), reading every record included",
            middle.as_millis(),
            longest.as_millis()
        );
    }
}
