//! `cargo xtask crash old-primary`: a primary that was replaced comes back as if nothing had happened.
//!
//! It is the first server in the URL, and takes writes. A client that has used the new primary must not ask it again: what
//! was done since the promotion is absent there.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::join_all;
use test_services::{Link, Postgres, Standby};

use super::campaign::{Campaign, ask_limit};
use super::client::{Claimed, Client};
use super::shown::Promise;
use crate::crash::fault::Kind;
use crate::progress::Stopwatch;
use xtask::{needs, run};

const WHAT: &str = "crash old-primary";
/// How many keys are completed on the new primary.
const KEYS: usize = 8;
const CALLERS: usize = 2;
const ACKNOWLEDGED: u64 = 20;
/// For how long the new primary cannot be reached, and the client asks nevertheless.
const UNREACHABLE_FOR: Duration = Duration::from_secs(1);
/// How soon the client must be served once the new primary can be reached again.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    run::started(&format!("{WHAT}: {rounds} rounds, seed {seed}"));
    let campaign = Campaign::new(WHAT, Promise::RunsOnce)?;
    campaign.rounds(rounds, |number| one_round(&campaign, number))?;
    campaign.verdict(rounds)?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

fn one_round(campaign: &Campaign, number: u64) -> Result<()> {
    let mut old = Postgres::start_in_memory(&[])?;
    let mut new = old.standby(Standby::Synchronous)?;
    let way = Link::to(new.port())?;
    let url = Postgres::url_of_either(old.port(), way.port());
    let mut client = campaign.client(&format!("client-{number}"), &url)?;
    client.complete_new_keys(CALLERS);
    campaign.live(ACKNOWLEDGED)?;
    old.kill()?;
    new.promote()?;
    ensure!(client.until_served(Stopwatch::start(), PATIENCE).is_some(), "the new primary is not found");
    let names: Vec<_> = (0..KEYS).map(|key| format!("done-{number}-{key}")).collect();
    campaign.runtime.block_on(complete(&client, &names))?;
    // Back as it was: a primary of the old timeline, which waits for no standby.
    old.resume_alone()?;
    control(&old, number)?;
    if number.is_multiple_of(2) {
        way.freeze();
    } else {
        way.cut();
    }
    let watch = Stopwatch::start();
    while watch.elapsed() < UNREACHABLE_FOR {
        campaign.runtime.block_on(ask(campaign, &client, &names));
    }
    way.mend();
    let mended = Stopwatch::start();
    let took = client.until_served(mended, PATIENCE);
    let millis = took.unwrap_or(PATIENCE).as_millis();
    println!("{WHAT}: served again {millis} ms after the new primary can be reached");
    if took.is_none_or(|took| took > SERVED_WITHIN) {
        campaign.shown.fault(Kind::Wrong, format!("not served for {millis} ms after the way was mended"));
    }
    campaign.runtime.block_on(ask(campaign, &client, &names));
    campaign.stop(client);
    campaign.judge(&new.url())?;
    Ok(())
}

async fn complete(client: &Client, names: &[String]) -> Result<()> {
    for permit in client.claim_new(names).await? {
        while client.complete(&permit).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Asks for every key: an error is right as long as the new primary cannot be reached, "not there" never is.
async fn ask(campaign: &Campaign, client: &Client, names: &[String]) {
    let lost = |name: &str, how: &str| {
        campaign.shown.fault(Kind::Lost, format!("{name} is done on the new primary, and was {how}"));
    };
    let reads = join_all(names.iter().map(|name| async {
        if client.is_there(name).await.is_ok_and(|is_there| !is_there) {
            lost(name, "shown as absent");
        }
    }));
    let claims = join_all(names.iter().map(|name| async {
        if let Ok(Claimed::Run(_)) = client.claim(name).await {
            lost(name, "granted by the old one");
        }
    }));
    let limit = ask_limit(2);
    if tokio::time::timeout(limit, async { tokio::join!(reads, claims) }).await.is_err() {
        let what = format!("asks had no answer after {} ms", limit.as_millis());
        campaign.shown.fault(Kind::Wrong, what);
    }
    tokio::time::sleep(PAUSE).await;
}

/// The old primary alone must be found to lack every key, or nothing above means anything.
fn control(old: &Postgres, number: u64) -> Result<()> {
    let found = old.ask(&format!("SELECT count(*) FROM semel_records WHERE name LIKE 'done-{number}-%'"))?;
    ensure!(found == "0", "{WHAT}: control: the old primary has {found} keys that were done on the new one");
    println!("{WHAT}: control: all {KEYS} keys that were done since are absent on the old primary");
    Ok(())
}
