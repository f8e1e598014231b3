//! `cargo xtask crash partition`: the way to PostgreSQL is cut, frozen, or swallows replies, under load.
//!
//! Three scenes, side by side: one server, whose ways fail and are mended; a primary that becomes unreachable while its
//! synchronous standby takes over; and an asynchronous standby that takes over while the old primary goes on (split brain).

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use test_services::{Link, Postgres, Standby};
use tokio_postgres::NoTls;

use super::campaign::{Campaign, ask_limit};
use super::shown::Promise;
use crate::crash::fault::Kind;
use crate::progress::Stopwatch;
use xtask::{needs, run};

const WHAT: &str = "crash partition";
/// How many callers each client has.
const CALLERS: usize = 4;
const ACKNOWLEDGED: u64 = 100;
/// Time to service once a way that was cut is mended, or a server that was killed is back.
const SERVED_AFTER_KILL: Duration = Duration::from_secs(2);
/// Time to service after a black hole, by default settings.
const SERVED_AFTER_BLACK_HOLE: Duration = Duration::from_secs(10);
/// So long a client is waited for, to see how long it takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// A partition is longer than any ask may take.
const PARTITION: Duration = Duration::from_secs(9);
/// Keys that are claimed and released in the split brain, and for how long on each side.
const FENCED_KEYS: usize = 4;
const SPLIT_FOR: Duration = Duration::from_secs(1);

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    run::started(&format!("{WHAT}: {rounds} rounds, seed {seed}"));
    for _ in 0..rounds {
        thread::scope(|scope| {
            let scenes =
                [scope.spawn(one_server), scope.spawn(black_hole_with_promotion), scope.spawn(split_brain)];
            let ended = scenes.map(|scene| scene.join().unwrap_or_else(|_| Err(anyhow!("a scene panicked"))));
            let failed: Vec<_> =
                ended.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
            ensure!(failed.is_empty(), "{}", failed.join("; "));
            Ok(())
        })?;
    }
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

/// What is done to a link, and what is expected of a client behind it.
struct Fault {
    what: &'static str,
    /// How the link fails.
    fail: fn(&Link),
    /// How soon after it is mended the client must be served.
    served_within: Duration,
    /// Whether a client without any limit of its own would wait.
    is_silent: bool,
}

const FAULTS: [Fault; 3] = [
    Fault {
        what: "crash partition: frozen",
        fail: Link::freeze,
        served_within: SERVED_AFTER_BLACK_HOLE,
        is_silent: true,
    },
    Fault {
        what: "crash partition: replies swallowed",
        fail: Link::swallow_replies,
        served_within: SERVED_AFTER_BLACK_HOLE,
        is_silent: true,
    },
    Fault {
        what: "crash partition: cut",
        fail: Link::cut,
        served_within: SERVED_AFTER_KILL,
        is_silent: false,
    },
];

/// One server, with a way of its own for each fault; and then it is killed.
fn one_server() -> Result<()> {
    let mut server = Postgres::start_in_memory(&[])?;
    thread::scope(|scope| {
        let server = &server;
        let clients = FAULTS.map(|fault| scope.spawn(move || one_link(server, &fault)));
        let ended = clients.map(|client| client.join().unwrap_or_else(|_| Err(anyhow!("a client panicked"))));
        ended.into_iter().collect::<Result<Vec<()>>>()
    })?;
    let campaign = Campaign::new("crash partition: killed", Promise::RunsOnce)?;
    let mut client = campaign.client("killed", &server.url())?;
    client.complete_new_keys(CALLERS);
    campaign.live(ACKNOWLEDGED)?;
    server.kill()?;
    server.resume()?;
    let back = Stopwatch::start();
    served(&campaign, client.until_served(back, PATIENCE), SERVED_AFTER_KILL);
    campaign.stop(client);
    campaign.judge(&server.url())?;
    campaign.verdict(1)
}

fn one_link(server: &Postgres, fault: &Fault) -> Result<()> {
    let (campaign, link) = (Campaign::new(fault.what, Promise::RunsOnce)?, Link::to(server.port())?);
    let name = fault.what.rsplit(' ').next().unwrap_or_default();
    let mut client = campaign.client(name, &server.url_over(&link))?;
    client.complete_new_keys(CALLERS);
    let control = campaign.runtime.block_on(without_limits(&server.url_over(&link)))?;
    campaign.live(ACKNOWLEDGED)?;
    (fault.fail)(&link);
    let asked = campaign.runtime.spawn(async move { control.simple_query("SELECT 1").await });
    thread::sleep(PARTITION);
    client.note_asks_under_way();
    let longest = campaign.shown.take_longest_ask();
    let limit = ask_limit(1);
    println!("{}: the longest ask took {} ms", fault.what, longest.as_millis());
    if longest > limit {
        let what = format!("an ask took {} ms; the limit is {} ms", longest.as_millis(), limit.as_millis());
        campaign.shown.fault(Kind::Wrong, what);
    }
    ensure!(
        asked.is_finished() != fault.is_silent,
        "{}: control: a client without limits was {}answered",
        fault.what,
        if fault.is_silent { "" } else { "not " }
    );
    link.mend();
    served(&campaign, client.until_served(Stopwatch::start(), PATIENCE), fault.served_within);
    campaign.stop(client);
    campaign.judge(&server.url())?;
    campaign.verdict(1)
}

/// A client that waits for ever.
async fn without_limits(url: &str) -> Result<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Says how long it took until all callers were served, and holds it against the bar.
fn served(campaign: &Campaign, took: Option<Duration>, within: Duration) {
    let millis = took.unwrap_or(PATIENCE).as_millis();
    println!("{}: all callers were served after {millis} ms", campaign.what);
    if took.is_none_or(|took| took > within) {
        let what = format!("it took {millis} ms until all were served; {} ms is allowed", within.as_millis());
        campaign.shown.fault(Kind::Wrong, what);
    }
}

/// The primary cannot be reached any more, and its synchronous standby takes over.
fn black_hole_with_promotion() -> Result<()> {
    let campaign = Campaign::new("crash partition: black hole, promotion", Promise::RunsOnce)?;
    let mut primary = Postgres::start_in_memory(&[])?;
    let (link, mut standby) = (Link::to(primary.port())?, primary.standby(Standby::Synchronous)?);
    let mut client = campaign.client("promoted", &Postgres::url_of_either(link.port(), standby.port()))?;
    client.complete_new_keys(CALLERS);
    campaign.live(ACKNOWLEDGED)?;
    let frozen = Stopwatch::start();
    link.freeze();
    standby.promote()?;
    let took = client.until_served(frozen, PATIENCE);
    client.note_asks_under_way();
    let (longest, limit) = (campaign.shown.take_longest_ask(), ask_limit(2));
    println!("{}: the longest ask took {} ms", campaign.what, longest.as_millis());
    if longest > limit {
        let what = format!("an ask took {} ms; the limit is {} ms", longest.as_millis(), limit.as_millis());
        campaign.shown.fault(Kind::Wrong, what);
    }
    served(&campaign, took, SERVED_AFTER_BLACK_HOLE);
    primary.kill()?;
    campaign.stop(client);
    campaign.judge(&standby.url())?;
    campaign.verdict(1)
}

/// An asynchronous standby lags, and takes over while one client still writes to the old primary. Both grant the same keys, which
/// nothing here can prevent; but never with the same fence.
fn split_brain() -> Result<()> {
    let campaign = Campaign::new("crash partition: split brain", Promise::FencesOnly)?;
    let primary = Postgres::start_in_memory(&[])?;
    let (replication, way) = (Link::to(primary.port())?, Link::to(primary.port())?);
    let mut standby = primary.standby_over(&replication, Standby::Asynchronous)?;
    let names = |side: &str| (0..FENCED_KEYS).map(|number| format!("{side}-{number}")).collect::<Vec<_>>();
    let mut stays = campaign.client("stays", &primary.url())?;
    let mut follows = campaign.client("follows", &Postgres::url_of_either(way.port(), standby.port()))?;
    stays.claim_and_release(&names("stays"));
    follows.claim_and_release(&names("follows"));
    let sequence = "CREATE SEQUENCE control; SELECT max(nextval('control')) FROM generate_series(1, 100)";
    campaign.live(ACKNOWLEDGED)?;
    primary.ask(sequence)?;
    let caught_up = "SELECT count(*) FROM pg_class WHERE relname = 'control'";
    while standby.ask(caught_up)? != "1" {}
    replication.freeze();
    // More than a sequence logs ahead: the standby does not know of them.
    campaign.live(ACKNOWLEDGED)?;
    let given = primary.ask("SELECT max(nextval('control')) FROM generate_series(1, 100)")?;
    standby.promote()?;
    way.cut();
    let promoted = Stopwatch::start();
    served(&campaign, follows.until_served(promoted, PATIENCE), SERVED_AFTER_KILL);
    thread::sleep(SPLIT_FOR);
    campaign.stop(stays);
    campaign.stop(follows);
    let given_again = standby.ask("SELECT nextval('control')")?;
    let number = |text: &str| text.parse::<u64>().with_context(|| format!("not a number: {text}"));
    ensure!(
        number(&given_again)? <= number(&given)?,
        "control: the standby's sequence went on at {given_again} after {given}: it had missed nothing"
    );
    println!("{}: control: a plain sequence gave {given}, and {given_again} after it", campaign.what);
    campaign.verdict(1)
}
