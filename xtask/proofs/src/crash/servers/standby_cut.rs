//! `cargo xtask crash standby-cut`: the synchronous standby cannot be reached, and the wait for it is broken off.
//!
//! PostgreSQL has committed locally by then. What a client is shown nevertheless must be there once the standby, which never got
//! it, has been promoted.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures_util::future::join_all;
use test_services::{Link, Postgres, Standby};

use super::campaign::Campaign;
use super::client::Client;
use super::shown::Promise;
use crate::crash::fault::Kind;
use crate::dice::Dice;
use crate::progress::Stopwatch;
use xtask::{needs, run};

const WHAT: &str = "crash standby-cut";
/// How many keys are claimed before the standby is cut off, and completed while it is.
const KEYS: usize = 12;
/// How many callers claim and complete new keys all the time.
const CALLERS: usize = 4;
/// How many acknowledgements come before the cut, at most.
const ACKNOWLEDGED_MOST: u64 = 200;
/// For how long waits are cancelled.
const CANCELLED_FOR: Duration = Duration::from_millis(1_500);
const BETWEEN_CANCELS: Duration = Duration::from_millis(50);
/// For how long another client asks for the keys.
const READ_FOR: Duration = Duration::from_secs(2);
/// Within this time of a promotion every caller must be served.
const SERVED_WITHIN: Duration = Duration::from_secs(2);
/// So long it is waited for, to see how long it takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the control may miss.
const CONTROL_ROUNDS: u64 = 5;
/// A sender of WAL that is to end does not wait long for a standby that cannot be reached.
const SETTINGS: [(&str, &str); 1] = [("wal_sender_timeout", "1s")];
/// One connection of the writer, and one of the holder.
const WAITING_LEAST: u32 = 2;
/// For so long the other connections may come to wait, too.
const OTHERS_FOLLOW_FOR: Duration = Duration::from_millis(200);
const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// How the wait for the standby is broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// `pg_cancel_backend` on every backend that waits.
    Cancel,
    /// An immediate stop of the primary, and its recovery.
    Crash,
    /// A fast shutdown of the primary, and another start.
    Shutdown,
}

const BREAKS: [Break; 3] = [Break::Cancel, Break::Crash, Break::Shutdown];

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    run::started(&format!("{WHAT}: {rounds} rounds, seed {seed}"));
    let (campaign, mut dice) = (Campaign::new(WHAT, Promise::RunsOnce)?, Dice::new(seed));
    let mut primary = Postgres::start_in_memory(&SETTINGS)?;
    let mut longest = Duration::ZERO;
    campaign.rounds(rounds, |number| {
        let scene = Scene::set(&campaign, &primary, Standby::Synchronous, number)?;
        campaign.live(dice.number(ACKNOWLEDGED_MOST))?;
        let how = BREAKS.into_iter().cycle().nth(usize::try_from(number)?).unwrap_or(Break::Cancel);
        let lost = campaign.shown.count(Kind::Lost);
        let (standby, took) = scene.play(&campaign, &mut primary, Some(how))?;
        let lost = campaign.shown.count(Kind::Lost) - lost;
        println!("{WHAT}: {how:?}: {lost} lost, served {} ms after the promotion", took.as_millis());
        longest = longest.max(took);
        primary = standby;
        Ok(())
    })?;
    println!("{WHAT}: served again at most {} ms after a promotion", longest.as_millis());
    campaign.verdict(rounds)?;
    drop(primary);
    control()?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

/// A primary, its standby behind a link, and their clients.
struct Scene {
    link: Link,
    standby: Postgres,
    url: String,
    writer: Client,
    /// Completes keys while the standby is cut off, beside the writer: it has connections of its own.
    holder: Client,
    reader: Client,
    /// Keys that run when the standby is cut off.
    names: Vec<String>,
}

impl Scene {
    fn set(campaign: &Campaign, primary: &Postgres, kind: Standby, round: u64) -> Result<Self> {
        let link = Link::to(primary.port())?;
        let standby = primary.standby_over(&link, kind)?;
        let url = Postgres::url_of_either(primary.port(), standby.port());
        let mut writer = campaign.client(&format!("writer-{round}"), &url)?;
        let holder = campaign.client(&format!("holder-{round}"), &url)?;
        let reader = campaign.client(&format!("reader-{round}"), &url)?;
        writer.complete_new_keys(CALLERS);
        let names = (0..KEYS).map(|number| format!("cut-{round}-{number}")).collect();
        Ok(Self { link, standby, url, writer, holder, reader, names })
    }

    /// Cuts the standby off, completes the keys, breaks the wait off, asks for the keys, and has the standby take over.
    /// Returns the new primary, and how long it took until every caller was served.
    fn play(
        mut self,
        campaign: &Campaign,
        primary: &mut Postgres,
        how: Option<Break>,
    ) -> Result<(Postgres, Duration)> {
        let permits = campaign.runtime.block_on(self.holder.claim_new(&self.names))?;
        self.link.freeze();
        self.holder.complete_permits(permits);
        match how {
            Some(how) => break_off(how, primary)?,
            None => self.until_completed()?,
        }
        campaign.runtime.block_on(self.read());
        // Otherwise it would complete its keys on the new primary, and nothing of them would be missing.
        campaign.stop(self.holder);
        primary.kill()?;
        self.standby.promote()?;
        let promoted = Stopwatch::start();
        let served = self.writer.until_served(promoted, PATIENCE);
        let took = served.unwrap_or(PATIENCE);
        if took > SERVED_WITHIN {
            let what = format!("after a promotion it took {} ms until all were served", took.as_millis());
            campaign.shown.fault(Kind::Wrong, what);
        }
        campaign.stop(self.writer);
        campaign.stop(self.reader);
        campaign.judge(&self.url)?;
        Ok((self.standby, took))
    }

    /// Another client asks for the keys; whatever it is shown counts.
    async fn read(&self) {
        let (names, reader) = (&self.names, &self.reader);
        let asks = names.iter().map(|name| async move {
            while reader.claim(name).await.is_err() {
                tokio::time::sleep(BETWEEN_CANCELS).await;
            }
        });
        // What has no answer by then was not shown.
        drop(tokio::time::timeout(READ_FOR, join_all(asks)).await);
    }

    fn until_completed(&self) -> Result<()> {
        let watch = Stopwatch::start();
        while self.holder.busy_callers() > 0 {
            ensure!(watch.elapsed() < PATIENCE, "completes wait for an asynchronous standby");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Waits until something waits for the standby, and breaks the wait off.
fn break_off(how: Break, primary: &mut Postgres) -> Result<()> {
    let watch = Stopwatch::start();
    while primary.ask(&format!("SELECT count(*) >= {WAITING_LEAST} {WAITING}"))? != "t" {
        ensure!(watch.elapsed() < PATIENCE, "nothing waits for a standby that cannot be reached");
    }
    std::thread::sleep(OTHERS_FOLLOW_FOR);
    match how {
        Break::Cancel => {
            let watch = Stopwatch::start();
            while watch.elapsed() < CANCELLED_FOR {
                primary.ask(&format!("SELECT pg_cancel_backend(pid) {WAITING}"))?;
                std::thread::sleep(BETWEEN_CANCELS);
            }
            Ok(())
        }
        Break::Crash => {
            primary.stop_immediately()?;
            primary.resume()
        }
        Break::Shutdown => {
            primary.stop()?;
            primary.resume()
        }
    }
}

/// A standby that the primary does not wait for must be found to lack something, or nothing above means anything.
fn control() -> Result<()> {
    let what = "crash standby-cut: control: an asynchronous standby";
    let campaign = Campaign::new(what, Promise::RunsOnce)?;
    let mut primary = Postgres::start_in_memory(&SETTINGS)?;
    for round in 1..=CONTROL_ROUNDS {
        let scene = Scene::set(&campaign, &primary, Standby::Asynchronous, round)?;
        (primary, _) = scene.play(&campaign, &mut primary, None)?;
        let lost = campaign.shown.count(Kind::Lost);
        if lost > 0 {
            println!("{what}: {lost} found lost after {round} failovers");
            return Ok(());
        }
    }
    bail!("{what}: nothing was found lost in {CONTROL_ROUNDS} failovers, and something must have been")
}
