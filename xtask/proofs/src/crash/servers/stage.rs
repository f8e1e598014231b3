//! A load on a server, round after round, and what came of it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::crash::fault::{Kind, Tally};
use crate::crash::victim::{self, Profile, SharedLedger, Victim};
use crate::dice::Dice;
use crate::progress::{Progress, Stopwatch};
use xtask::{needs, run};

/// How many acknowledgements are waited for between two crashes, at most.
const ACKNOWLEDGED_MOST: u64 = 600;
/// And how long then, at most: a crash may come at any instant.
const LIFE_MOST: Duration = Duration::from_millis(20);
/// How long a load may be without those acknowledgements.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// After so many faults it is clear that something is broken.
const FAULTS_MOST: usize = 20;

/// Where one server is hurt over and over: the load's program, the choices, and what was heard.
pub(super) struct Stage {
    pub(super) what: &'static str,
    program: PathBuf,
    seed: u64,
    pub(super) dice: Dice,
    pub(super) ledger: SharedLedger,
    /// Whether faults are counted, or end everything.
    tolerance: Tolerance,
}

/// What a fault means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// The store is broken.
    None,
    /// It was to be expected, and is counted.
    Counted,
}

impl Stage {
    /// Builds what is needed, and says what is about to happen.
    pub(super) fn build(what: &'static str, rounds: u64, seed: u64) -> Result<Self> {
        needs::for_tests()?;
        let program = victim::build(Profile::for_rounds(rounds))?;
        run::started(&format!("{what}: {rounds} rounds, seed {seed}"));
        let (dice, ledger) = (Dice::new(seed), SharedLedger::default());
        Ok(Self { what, program, seed, dice, ledger, tolerance: Tolerance::None })
    }

    /// The same for another server, of which nothing is known yet.
    pub(super) fn another(&self, what: &'static str, tolerance: Tolerance) -> Self {
        let seed = self.seed.wrapping_add(1);
        let (program, dice, ledger) = (self.program.clone(), Dice::new(seed), SharedLedger::default());
        Self { what, program, seed, dice, ledger, tolerance }
    }

    /// Puts a load on the server at this address; it has looked at everything when this returns.
    pub(super) fn load(&mut self, url: &str) -> Result<Victim> {
        let seed = self.dice.seed().to_string();
        let mut victim = Victim::start(&self.program, &["load", "--seed", &seed], url, &self.ledger)?;
        self.until_looked(&mut victim)?;
        Ok(victim)
    }

    /// Lets the load go on for a while. It must be served: a store that is never back would lose nothing either.
    pub(super) fn live(&mut self) -> Result<()> {
        let ledger = self.ledger.clone();
        let acknowledged = || ledger.lock().tally.acknowledgements;
        let (until, watch) = (acknowledged() + 1 + self.dice.number(ACKNOWLEDGED_MOST), Stopwatch::start());
        while acknowledged() < until {
            ensure!(watch.elapsed() < PATIENCE, "{}: the load is not served any more", self.what);
            std::thread::sleep(BETWEEN_LOOKS);
        }
        std::thread::sleep(self.dice.instant(LIFE_MOST));
        Ok(())
    }

    /// Waits until the load has told everything that is in its store.
    pub(super) fn until_looked(&self, victim: &mut Victim) -> Result<()> {
        if !victim.wait_until_looked()? {
            let faults = &self.ledger.lock().tally.faults;
            bail!(
                "{}: the load ended by itself: {} faults, the first {:?}",
                self.what,
                faults.len(),
                faults.first()
            );
        }
        Ok(())
    }

    /// Does something so many times, unless it is clear before that the store is broken. Says how often.
    pub(super) fn rounds(
        &mut self,
        rounds: u64,
        mut round: impl FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<u64> {
        let progress = Progress::new(self.what, rounds);
        for number in 1..=rounds {
            round(self, number)?;
            progress.step();
            let faults = self.ledger.lock().tally.faults.len();
            if self.tolerance == Tolerance::None && faults > FAULTS_MOST {
                return Ok(number);
            }
        }
        Ok(rounds)
    }

    /// Does something until an acknowledgement is found lost, or so many times. Says how many were lost, and after how
    /// many rounds.
    pub(super) fn until_lost(
        &mut self,
        most: u64,
        mut round: impl FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<(usize, u64)> {
        for number in 1..=most {
            round(self, number)?;
            let lost = self.ledger.lock().tally.count(Kind::Lost);
            if lost > 0 {
                return Ok((lost, number));
            }
        }
        bail!("{}: nothing was found lost in {most} rounds, and something must have been", self.what)
    }

    /// Says what came of it, and fails if anything is wrong.
    pub(super) fn verdict(&self, rounds: u64, watch: Stopwatch) -> Result<()> {
        let tally = self.tally();
        for fault in tally.faults.iter().take(FAULTS_MOST) {
            run::failed(&fault.to_string());
        }
        let (what, faults) = (self.what, tally.faults.len());
        println!("{what}: {rounds} rounds, {:.1} a second: {tally}", watch.rate(rounds));
        ensure!(faults == 0, "{what}: {faults} faults; seed {}", self.seed);
        Ok(())
    }

    pub(super) fn tally(&self) -> Tally {
        self.ledger.lock().tally.clone()
    }
}
