//! `cargo xtask crash sentinel`: the master of Redis cannot be reached, by all or by its replica and the sentinel, who replace it.
//!
//! A replica of Redis is asynchronous: what the master acknowledged and the replica did not get is lost. With
//! `min-replicas-to-write` a master without its replica soon takes no more writes; without it, a client that does not hear of
//! the new master goes on writing to the old one.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use test_services::RedisWithSentinel;

use super::campaign::Campaign;
use super::client::Client;
use super::shown::Promise;
use crate::crash::fault::Kind;
use crate::progress::Stopwatch;
use xtask::{needs, run};

const WHAT: &str = "crash sentinel";
const CALLERS: usize = 4;
const ACKNOWLEDGED: u64 = 100;
/// What the docs advise; the lag is in seconds.
const ADVISED: [(&str, &str); 2] = [("min-replicas-to-write", "1"), ("min-replicas-max-lag", "1")];
/// For so long after it was cut off from its replica a master may still acknowledge: the lag, the second in which Redis
/// notices it, and the second since the last word of the replica.
const ACKNOWLEDGED_ALONE_MOST: Duration = Duration::from_secs(3);
/// For so long the control goes on after the master was replaced.
const DEPOSED_FOR: Duration = Duration::from_secs(2);
/// Time to service after a black hole, by default settings.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// So long a client is waited for, to see how long it takes.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often the control may miss.
const CONTROL_ROUNDS: u64 = 3;

/// Who cannot reach the master any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partition {
    /// All: a black hole.
    Frozen,
    /// Its replica and the sentinel: clients still reach it.
    Isolated,
}

/// What came of one failover.
struct Failover {
    /// The longest time in which no caller was served.
    without_service: Duration,
    /// How many outcomes that were shown are lost.
    lost: usize,
    /// How long after the partition the last of those was shown.
    last_lost: Duration,
}

pub(in crate::crash) fn run(rounds: u64, seed: u64) -> Result<()> {
    needs::for_tests()?;
    run::started(&format!("{WHAT}: {rounds} rounds, seed {seed}"));
    let results = [Partition::Frozen, Partition::Isolated]
        .map(|partition| thread::spawn(move || advised(partition, rounds)));
    let control = thread::spawn(control);
    let mut failed = Vec::new();
    for result in results.into_iter().chain([control]) {
        match result.join() {
            Ok(ended) => failed.extend(ended.err().map(|error| format!("{error:#}"))),
            Err(_) => bail!("{WHAT}: a campaign panicked"),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    run::passed(&format!("{WHAT}: {rounds} rounds without a fault"));
    Ok(())
}

/// With the settings that the docs advise.
fn advised(partition: Partition, rounds: u64) -> Result<()> {
    let what = match partition {
        Partition::Frozen => "crash sentinel: frozen",
        Partition::Isolated => "crash sentinel: isolated",
    };
    let (campaign, redis) = (Campaign::new(what, Promise::FencesOnly)?, RedisWithSentinel::start(&ADVISED)?);
    let (mut longest, mut lost, mut last_lost) = (Duration::ZERO, 0, Duration::ZERO);
    campaign.rounds(rounds, |number| {
        let failover = fail_over(&campaign, &redis, partition, number, until_served_again)?;
        longest = longest.max(failover.without_service);
        (lost, last_lost) = (lost + failover.lost, last_lost.max(failover.last_lost));
        redis.mend();
        redis.until_replicated()
    })?;
    let (gap, shown_after) = (longest.as_millis(), last_lost.as_millis());
    println!(
        "{what}: {lost} outcomes lost, the last shown {shown_after} ms after the partition; at most {gap} ms without service"
    );
    if last_lost > ACKNOWLEDGED_ALONE_MOST {
        let what = format!("an outcome that is lost was shown {shown_after} ms after the partition");
        campaign.shown.fault(Kind::Lost, what);
    }
    if longest > SERVED_WITHIN {
        campaign.shown.fault(Kind::Wrong, format!("{gap} ms without service"));
    }
    campaign.verdict(rounds)
}

/// Waits until every caller is served by the new master.
fn until_served_again(campaign: &Campaign, client: &Client, began: Stopwatch) {
    // By then the old one takes no more writes.
    thread::sleep(ACKNOWLEDGED_ALONE_MOST.saturating_sub(began.elapsed()));
    if client.until_served(Stopwatch::start(), PATIENCE).is_none() {
        campaign.shown.fault(Kind::Wrong, format!("a caller was not served for {} s", PATIENCE.as_secs()));
    }
}

/// One failover, and what it lost. After the master was replaced, `go_on` decides for how long the load goes on.
fn fail_over(
    campaign: &Campaign,
    redis: &RedisWithSentinel,
    partition: Partition,
    round: u64,
    go_on: impl FnOnce(&Campaign, &Client, Stopwatch),
) -> Result<Failover> {
    let mut client = campaign.client(&format!("client-{round}"), &redis.url())?;
    client.complete_new_keys(CALLERS);
    campaign.live(ACKNOWLEDGED)?;
    campaign.shown.take_longest_gap();
    let began = Stopwatch::start();
    let old = match partition {
        Partition::Frozen => redis.freeze_master()?,
        Partition::Isolated => redis.isolate_master()?,
    };
    redis.until_master_is_not(old)?;
    let replaced = began.elapsed();
    go_on(campaign, &client, began);
    let without_service = campaign.shown.take_longest_gap();
    campaign.stop(client);
    let lost = campaign.find_lost(&redis.url())?;
    let since = |shown: Stopwatch| began.elapsed().saturating_sub(shown.elapsed());
    let last_lost = lost.iter().map(|(_, outcome)| since(outcome.at)).max().unwrap_or_default();
    println!(
        "{}: replaced after {} ms, {} ms without service, {} outcomes lost, the last shown {} ms after the partition",
        campaign.what,
        replaced.as_millis(),
        without_service.as_millis(),
        lost.len(),
        last_lost.as_millis()
    );
    Ok(Failover { without_service, lost: lost.len(), last_lost })
}

/// A master that needs no replica for its writes must be found to lose some, or nothing above means anything.
fn control() -> Result<()> {
    let what = "crash sentinel: control: without min-replicas-to-write";
    let (campaign, redis) = (Campaign::new(what, Promise::FencesOnly)?, RedisWithSentinel::start(&[])?);
    for round in 1..=CONTROL_ROUNDS {
        let failover =
            fail_over(&campaign, &redis, Partition::Isolated, round, |_, _, _| thread::sleep(DEPOSED_FOR))?;
        if failover.lost > 0 {
            println!("{what}: {} found lost after {round} failovers", failover.lost);
            return Ok(());
        }
        redis.mend();
        redis.until_replicated()?;
    }
    bail!("{what}: nothing was found lost in {CONTROL_ROUNDS} failovers, and something must have been")
}
