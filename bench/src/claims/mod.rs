//! The measurement of the claim server: cycles of claim and complete, beside a bare JSON echo and Redis.
//!
//! - [`cycle`]: what clients send, and how they check the answers.

mod cycle;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use test_services::Redis;

use crate::args::ClaimsArgs;
use crate::clients::Plan;
use crate::folder::TempFolder;
use crate::process::{SemelProgram, SemelStore, Server, serve};
use crate::report::{
    Bar, Case, ChartBar, Column, MS, Metric, Page, Panel, Row, Rows, Sample, TENTHS, WHOLE, drive,
    filesystem, float,
};
use crate::servers::redis_version;
use crate::timing::Cpu;

/// How many cycles a batch has.
const BATCH: u64 = 100;
const CONNECTIONS: u64 = 64;
const ECHO_PATH: &str = "/echo";
const CYCLES: &str = "cycles";
/// How many commands redis-benchmark sends: it counts commands and not seconds.
const COMMANDS_PER_MS: u64 = 60;
/// Out of how many keys: nearly the most that redis-benchmark can count to.
const REDIS_KEYS: &str = "2000000000";

/// Who is measured, doing what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    Echo,
    /// Claim and complete, a request each.
    Single(SemelStore),
    /// A hundred of them in a request.
    Batched(SemelStore),
    /// `SET NX` on a Redis that keeps nothing on a disk.
    Redis,
}

impl Contestant {
    /// In the order of the table.
    const ALL: [Self; 6] = [
        Self::Echo,
        Self::Single(SemelStore::Memory),
        Self::Single(SemelStore::File),
        Self::Batched(SemelStore::Memory),
        Self::Batched(SemelStore::File),
        Self::Redis,
    ];

    const fn case(self) -> Case {
        Case::new(
            CYCLES,
            match self {
                Self::Echo => "bare JSON echo",
                Self::Single(SemelStore::Memory) => "semel, memory store, single requests",
                Self::Single(SemelStore::File) => "semel, file store, single requests",
                Self::Batched(SemelStore::Memory) => "semel, memory store, batches of 100",
                Self::Batched(SemelStore::File) => "semel, file store, batches of 100",
                Self::Redis => "Redis, SET NX, no durability",
            },
        )
    }

    /// How many requests a cycle takes: a claim and a complete, each shared by a batch.
    fn requests_per_cycle(self) -> f64 {
        match self {
            Self::Echo | Self::Redis => 1.0,
            Self::Single(_) => 2.0,
            Self::Batched(_) => 2.0 / float(BATCH),
        }
    }
}

/// Measures everything, and publishes the page.
pub(crate) fn run(args: &ClaimsArgs) -> Result<()> {
    let folder = TempFolder::under(args.folder.as_deref())?;
    let mut page = Page::new("server", include_str!("../pages/server.md"), args)?;
    page.fact("filesystem", filesystem(folder.path(), "name a folder on a disk with --folder")?);
    let redis = start_redis()?;
    page.fact("Redis", redis_version(&redis).context("Redis does not answer")?);
    let semel = SemelProgram::new(args.semel.as_deref());
    semel.describe(&mut page);
    page.fact_other_processes();
    let cases = Contestant::ALL.map(Contestant::case).into();
    drive(args.run.rounds, &[cases], &mut page.rows, &mut |case, rows| {
        let is_it = |contestant: &Contestant| contestant.case() == case;
        let contestant = Contestant::ALL.into_iter().find(is_it).context("every case has a contestant")?;
        let server = match contestant {
            Contestant::Redis => {
                rows.add(case, redis_window(&redis, args.window_ms)?);
                return Ok(());
            }
            Contestant::Echo => Server::of_this_program(&["claims-echo"], &folder.fresh("server")?)?,
            // The real program, without tokens.
            Contestant::Single(store) | Contestant::Batched(store) => {
                semel.start(&["serve"], store, &folder.fresh("server")?)?
            }
        };
        let span = Duration::from_millis(args.window_ms);
        rows.add(case, cycle::window(contestant, Plan { port: server.port, pid: server.pid(), span })?);
        Ok(())
    })?;
    page.bars = bars(&page.rows);
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

/// What a claim is, as the echo knows it.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    scope: Vec<String>,
    operation: String,
    name: String,
    owner: String,
}

/// The least that a server with JSON in and out can be: the request, read into a value and written again.
fn echo() -> Router {
    Router::new().route(ECHO_PATH, post(async |Json(claim): Json<Claim>| Json(claim)))
}

/// Serves the echo, in a process of its own.
pub(crate) fn run_echo(port: u16) -> Result<()> {
    serve(port, || Ok(echo()))
}

/// A Redis that appends nothing to any file.
fn start_redis() -> Result<Redis> {
    Redis::start_with(&[("appendonly", "no"), ("appendfsync", "no")])
}

/// `SET NX` by redis-benchmark, for about so long. It does not say what the server took of the processor.
fn redis_window(redis: &Redis, span_ms: u64) -> Result<Sample> {
    redis.ask(&["FLUSHALL"])?;
    let commands = (span_ms * COMMANDS_PER_MS).max(1_000);
    let (port, clients, count) = (redis.port().to_string(), CONNECTIONS.to_string(), commands.to_string());
    let cpu = Cpu::of(std::process::id())?;
    let line = ["-p", &port, "-c", &clients, "-P", "1", "-n", &count, "-r", REDIS_KEYS, "--csv"];
    let output = Command::new("redis-benchmark")
        .args(line)
        .args(["SET", "key:__rand_int__", "worker-7", "NX"])
        .output()
        .context("redis-benchmark was not found: install redis-tools")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "redis-benchmark failed: {text}");
    let kept: u64 = redis.ask(&["DBSIZE"])?.first().and_then(|size| size.parse().ok()).unwrap_or(0);
    // Few of so many random keys are the same.
    ensure!(kept * 100 > commands * 99, "{commands} keys were set, and {kept} are there");
    let client = cpu.until_now()?;
    let [rate, p50_ms, p99_ms] = ["rps", "p50_latency_ms", "p99_latency_ms"].map(|name| cell(&text, name));
    let rate = rate?;
    Ok(Sample::from([
        (Metric::PerSecond, rate),
        (Metric::RequestsPerSecond, rate),
        (Metric::P50Us, p50_ms? * 1e3),
        (Metric::P99Us, p99_ms? * 1e3),
        (Metric::ClientCpuUs, client.as_secs_f64() * 1e6 / float(commands)),
    ]))
}

/// The number under this heading, in the table that redis-benchmark prints.
fn cell(text: &str, name: &str) -> Result<f64> {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with('"'))
        .map(|line| line.split("\",\"").map(|cell| cell.trim_matches('"')).collect())
        .collect();
    let (heading, values) = rows.first().zip(rows.last()).with_context(|| format!("no table in {text}"))?;
    let column = heading.iter().position(|cell| *cell == name);
    let value = column.and_then(|column| values.get(column)?.parse().ok());
    value.with_context(|| format!("no number under {name} in {text}"))
}

fn bars(rows: &Rows) -> Vec<Bar> {
    let [echo, memory, file, memory_batched, file_batched, redis] = Contestant::ALL.map(Contestant::case);
    let requests = |own: Case, wanted| {
        let times = rows.times(own, echo, Metric::RequestsPerSecond);
        Bar::at_least(format!("requests per second, {own}"), wanted, times, "× bare JSON echo")
    };
    let cycles = |own: Case, wanted, other, beside| {
        let times = rows.times(own, other, Metric::PerSecond);
        Bar::at_least(format!("cycles per second, {own}"), wanted, times, beside)
    };
    vec![
        requests(memory, 0.4),
        requests(file, 0.3),
        cycles(memory_batched, 10.0, memory, "× single requests"),
        cycles(file_batched, 10.0, file, "× single requests"),
        cycles(file_batched, 0.5, redis, "× Redis, SET NX, no durability"),
    ]
}

fn describe(page: &mut Page) {
    let [echo, .., redis] = Contestant::ALL.map(Contestant::case);
    let columns = [
        Column::contestant(),
        Column::median("cycles/s", Metric::PerSecond, WHOLE),
        Column::range(Metric::PerSecond, WHOLE),
        Column::median("requests/s", Metric::RequestsPerSecond, WHOLE),
        Column::median("p50 ms", Metric::P50Us, MS),
        Column::median("p99 ms", Metric::P99Us, MS),
        Column::median("server CPU µs a cycle", Metric::ServerCpuUs, TENTHS),
        Column::median("client CPU µs a cycle", Metric::ClientCpuUs, TENTHS),
        Column::times("requests/s × echo", Metric::RequestsPerSecond, |case| (case, echo)),
        Column::times("cycles/s × Redis", Metric::PerSecond, |case| (case, redis)),
    ];
    page.table(CYCLES, &columns);
    let (rows, p99) =
        (page.rows.of(CYCLES), |row: &Row| format!("p99 {:.1} ms", row.median(Metric::P99Us) / 1e3));
    let bar = |metric| {
        move |row: &Row| {
            let bar = ChartBar::of(row, metric, WHOLE, &p99(row));
            let (name, label) = row.case.contestant.split_once(", ").unwrap_or((&bar.name, &bar.name));
            (label.to_owned(), ChartBar { name: name.to_owned(), ..bar })
        }
    };
    let (title, axis) = ("Requests, one key each", "requests per second: more is better");
    let single = Panel::new(title, axis, rows.take(3), bar(Metric::RequestsPerSecond));
    let title = "Keys claimed and completed in batches of 100; SET NX";
    let axis = "cycles per second: more is better; p99 is of a batch";
    let batched = Panel::new(title, axis, page.rows.of(CYCLES).skip(3), bar(Metric::PerSecond));
    page.panel(single);
    page.panel(batched);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"SET a, b NX\",\"51.5\",\"0.1\",\"0.2\",\"0.3\"\n";
        let found = ["rps", "p50_latency_ms", "p99_latency_ms"].map(|name| cell(text, name).unwrap());
        assert_eq!(format!("{found:?}"), "[51.5, 0.2, 0.3]");
        assert!(cell("", "rps").is_err());
    }

    #[test]
    fn redis_keeps_every_key_and_says_how_fast() {
        let found = redis_window(&start_redis().unwrap(), 20).unwrap();
        assert!(
            found[&Metric::PerSecond] > 0.0 && found[&Metric::P99Us] >= found[&Metric::P50Us],
            "{found:?}"
        );
    }
}
