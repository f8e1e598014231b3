//! A campaign whose clients run in this process: what they were shown is compared with what is there afterwards.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::client::Client;
use super::shown::{Promise, Shown, ShownOutcome};
use crate::crash::fault::Kind;
use crate::progress::{Progress, Stopwatch};
use xtask::run;

/// How long a store may take until it answers the judge.
const JUDGED_WITHIN: Duration = Duration::from_secs(30);
/// How many keys are judged at the same time.
const JUDGED_AT_ONCE: usize = 64;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a load may be without the acknowledgements that are waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many faults are printed.
const FAULTS_PRINTED: usize = 10;

/// The documented limits of one ask of PostgreSQL: `reply_within_ms`, and `connect_within_ms` for each server in the URL.
const REPLY_WITHIN: Duration = Duration::from_secs(5);
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_millis(1_500);

/// The longest that one ask may take with so many servers in the URL.
pub(super) fn ask_limit(servers: u32) -> Duration {
    REPLY_WITHIN.saturating_add(CONNECT_WITHIN.saturating_mul(servers)).saturating_add(SLACK)
}

/// A runtime for clients, and everything that they were shown.
pub(super) struct Campaign {
    pub(super) what: &'static str,
    pub(super) runtime: Runtime,
    pub(super) shown: Arc<Shown>,
    watch: Stopwatch,
}

impl Campaign {
    pub(super) fn new(what: &'static str, promise: Promise) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { what, runtime, shown: Arc::new(Shown::new(promise)), watch: Stopwatch::start() })
    }

    /// A client of the store at this URL.
    pub(super) fn client(&self, name: &str, url: &str) -> Result<Client> {
        self.runtime.block_on(Client::connect(name, url, &self.shown))
    }

    pub(super) fn stop(&self, client: Client) {
        self.runtime.block_on(client.stop());
    }

    /// Does something so many times, and shows how far it is.
    pub(super) fn rounds(&self, rounds: u64, mut round: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let progress = Progress::new(self.what, rounds);
        for number in 1..=rounds {
            round(number).with_context(|| format!("{}: round {number}", self.what))?;
            progress.step();
        }
        Ok(())
    }

    /// Lets the load go on until so many more acknowledgements were given.
    pub(super) fn live(&self, acknowledgements: u64) -> Result<()> {
        let (until, watch) = (self.shown.acknowledgements() + acknowledgements, Stopwatch::start());
        while self.shown.acknowledgements() < until {
            ensure!(watch.elapsed() < PATIENCE, "{}: the load is not served any more", self.what);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Every outcome that was shown must be in the store at this URL; each that is not is a fault. Outcomes are judged once.
    pub(super) fn judge(&self, url: &str) -> Result<()> {
        for (name, outcome) in self.find_lost(url)? {
            let ago = outcome.at.elapsed().as_millis();
            self.shown
                .fault(Kind::Lost, format!("{name}: its outcome was shown {ago} ms ago, and is not there"));
        }
        Ok(())
    }

    /// Asks the store at this URL for every outcome that was shown, and returns those that are not there.
    pub(super) fn find_lost(&self, url: &str) -> Result<Vec<(String, ShownOutcome)>> {
        let outcomes = self.shown.take_outcomes();
        self.runtime.block_on(async {
            let nothing = Arc::new(Shown::new(Promise::FencesOnly));
            let judge = Arc::new(Client::connect("judge", url, &nothing).await?);
            let (mut lost, mut asks) = (Vec::new(), JoinSet::new());
            for (name, outcome) in outcomes {
                if asks.len() >= JUDGED_AT_ONCE
                    && let Some(found) = asks.join_next().await
                {
                    lost.extend(found??);
                }
                let (judge, shown) = (Arc::clone(&judge), Arc::clone(&self.shown));
                asks.spawn(async move {
                    let is_there = is_there(&judge, &shown, &name, &outcome).await?;
                    anyhow::Ok((!is_there).then_some((name, outcome)))
                });
            }
            while let Some(found) = asks.join_next().await {
                lost.extend(found??);
            }
            Ok(lost)
        })
    }

    /// Says what came of it, and fails if anything is wrong.
    pub(super) fn verdict(&self, rounds: u64) -> Result<()> {
        let faults = self.shown.faults();
        for fault in faults.iter().take(FAULTS_PRINTED) {
            run::failed(&fault.to_string());
        }
        let (what, shown, seconds) = (self.what, &self.shown, self.watch.elapsed().as_secs());
        println!("{what}: {rounds} rounds in {seconds} s: {shown}");
        ensure!(faults.is_empty(), "{what}: {} faults", faults.len());
        Ok(())
    }
}

/// Asks for one key as a client would.
async fn is_there(judge: &Client, shown: &Shown, name: &str, outcome: &ShownOutcome) -> Result<bool> {
    let watch = Stopwatch::start();
    loop {
        match judge.outcome(name).await {
            Ok(Some(found)) => {
                if found != outcome.bytes {
                    shown.fault(Kind::Corrupt, format!("{name} has another outcome than was shown"));
                }
                return Ok(true);
            }
            Ok(None) => return Ok(false),
            Err(error) if watch.elapsed() > JUDGED_WITHIN => return Err(error.into()),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
