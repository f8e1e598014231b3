//! `cargo xtask crash pooler`: PostgreSQL behind `PgBouncer` with transaction pooling, which is killed, as is the server.
//!
//! Sessions are shared with other applications, which must find them as they left them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_services::{PgBouncer, PoolMode, Postgres};
use tokio_postgres::{Client as Session, NoTls, SimpleQueryMessage};

use super::campaign::Campaign;
use super::shown::Promise;
use crate::crash::fault::Kind;
use crate::dice::Dice;
use crate::progress::Stopwatch;
use xtask::{needs, run};

const WHAT: &str = "crash pooler";
/// How many clients there are, and how many callers each has: more than the pooler has sessions.
const CLIENTS: usize = 2;
const CALLERS: usize = 4;
const ACKNOWLEDGED_MOST: u64 = 200;
/// How many sessions the pooler keeps, all of which are read.
const SESSIONS: usize = 4;
/// How soon all callers must be served after a kill.
const SERVED_WITHIN: Duration = Duration::from_secs(2);
/// So long they are waited for, to see how long it takes.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long it may take until a session can be had.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// What an application may rely on in its session.
const SETTINGS: &str = "SELECT name || ' = ' || setting FROM pg_settings WHERE source NOT IN ('default', 'override') \
     AND name <> 'application_name' AND context = 'user' ORDER BY name";
const PREPARED: &str = "SELECT 'prepared statement ' || name FROM pg_prepared_statements";
const LISTENING: &str = "SELECT 'listens to ' || channel FROM pg_listening_channels() AS channel";
const LOCKS: &str =
    "SELECT 'advisory lock ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    run::started(&format!("{WHAT}: {rounds} rounds, seed {seed}"));
    let (campaign, mut dice) = (Campaign::new(WHAT, Promise::RunsOnce)?, Dice::new(seed));
    let mut server = Postgres::start_in_memory(&[])?;
    let mut pooler = PgBouncer::start(&server, PoolMode::Transaction)?;
    let clean = campaign.runtime.block_on(states(&pooler.url(), SESSIONS))?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        match campaign.client(&format!("client-{number}"), &pooler.url()) {
            Ok(mut client) => {
                client.complete_new_keys(CALLERS);
                clients.push(client);
            }
            Err(error) => campaign.shown.fault(Kind::Wrong, format!("{error:#}")),
        }
    }
    ensure!(!clients.is_empty(), "{WHAT}: no client can connect over the pooler");
    let mut longest = Duration::ZERO;
    campaign.rounds(rounds, |number| {
        campaign.live(1 + dice.number(ACKNOWLEDGED_MOST))?;
        inspect(&campaign, &pooler, &clean)?;
        if number.is_multiple_of(2) {
            server.kill()?;
            server.resume()?;
        } else {
            pooler.kill()?;
            pooler.resume()?;
        }
        let back = Stopwatch::start();
        for client in &clients {
            let took = client.until_served(back, PATIENCE).unwrap_or(PATIENCE);
            longest = longest.max(took);
            if took > SERVED_WITHIN {
                campaign
                    .shown
                    .fault(Kind::Wrong, format!("not served for {} ms after a kill", took.as_millis()));
            }
        }
        Ok(())
    })?;
    inspect(&campaign, &pooler, &clean)?;
    for client in clients {
        campaign.stop(client);
    }
    campaign.judge(&server.url())?;
    println!("{WHAT}: all callers were served at most {} ms after a kill", longest.as_millis());
    campaign.verdict(rounds)?;
    control(&campaign, &pooler, &clean)?;
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

/// What is found in a session, and in how many of them.
type Found = BTreeMap<String, usize>;

/// Whatever is in the pooler's sessions that was not there before is a fault.
fn inspect(campaign: &Campaign, pooler: &PgBouncer, clean: &Found) -> Result<()> {
    let found = campaign.runtime.block_on(states(&pooler.url(), SESSIONS))?;
    for (what, sessions) in left_behind(&found, clean) {
        campaign
            .shown
            .fault(Kind::Wrong, format!("another application finds `{what}` in {sessions} sessions"));
    }
    Ok(())
}

fn left_behind<'a>(found: &'a Found, clean: &'a Found) -> impl Iterator<Item = (&'a String, &'a usize)> {
    found.iter().filter(|(what, _)| !clean.contains_key(*what))
}

/// Opens so many transactions at once, so that each has a session of its own, and reads what is set in it.
async fn states(url: &str, sessions: usize) -> Result<Found> {
    let mut open = Vec::new();
    for _ in 0..sessions {
        open.push(begin(url).await?);
    }
    let mut found = Found::new();
    for session in &open {
        for question in [SETTINGS, PREPARED, LISTENING, LOCKS] {
            for message in session.simple_query(question).await? {
                if let SimpleQueryMessage::Row(row) = message {
                    *found.entry(row.get(0).unwrap_or_default().to_owned()).or_default() += 1;
                }
            }
        }
        session.simple_query("COMMIT").await?;
    }
    Ok(found)
}

/// A session in a transaction, as soon as the pooler has one: after a kill of the server it may have none at first.
async fn begin(url: &str) -> Result<Session> {
    let watch = Stopwatch::start();
    loop {
        let begun = async {
            let (session, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            session.simple_query("BEGIN").await?;
            Ok::<_, tokio_postgres::Error>(session)
        };
        match tokio::time::timeout(CONNECT_WITHIN, begun)
            .await
            .context("no session can be had from the pooler")?
        {
            Ok(session) => return Ok(session),
            Err(error) if watch.elapsed() > CONNECT_WITHIN => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// An application that leaves a setting, a lock, a statement and a channel behind must be found out.
fn control(campaign: &Campaign, pooler: &PgBouncer, clean: &Found) -> Result<()> {
    let found = campaign.runtime.block_on(async {
        let session = begin(&pooler.url()).await?;
        session
            .simple_query(
                "SET enable_seqscan = off; PREPARE left_behind AS SELECT 1; LISTEN left_behind; \
                 SELECT pg_advisory_lock(7); COMMIT",
            )
            .await?;
        states(&pooler.url(), SESSIONS).await
    })?;
    let left: Vec<_> = left_behind(&found, clean).map(|(what, _)| what.as_str()).collect();
    let all = [
        "advisory lock 7",
        "enable_seqscan = off",
        "listens to left_behind",
        "prepared statement left_behind",
    ];
    ensure!(all.iter().all(|one| left.contains(one)), "{WHAT}: control: only {left:?} of {all:?} was found");
    println!("{WHAT}: control: what another application leaves behind is found: {left:?}");
    Ok(())
}
