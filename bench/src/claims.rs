//! The measurement of the claim server: cycles of claim and complete, beside a bare JSON echo and Redis.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use test_services::Redis;

use crate::args::ClaimsArgs;
use crate::clients::{self, Client, Connection, Pace, Plan, lossy};
use crate::folder::{TempFolder, filesystem};
use crate::process::{SemelProgram, SemelStore, Server, serve};
use crate::report::{
    Bar, Case, ChartBar, Column, MS, Metric, Page, Panel, Row, Rows, Sample, TENTHS, WHOLE, drive, float,
};

const BATCH: u64 = 100;
const CONNECTIONS: u64 = 64;
const ECHO_PATH: &str = "/echo";
const CYCLES: &str = "cycles";
const OK: u16 = 200;
const PERMIT: &[u8] = b"\"permit\":\"";
const RUN: &[u8] = b"\"decision\":\"run\"";
const DONE: &[u8] = b"\"decision\":\"done\"";
/// What a small job came to: about as much as a charge is.
const OUTCOME: &str = r#"{"json":{"id":"ch_81726354","amount":4200,"currency":"eur","status":"succeeded"}}"#;
/// How many commands redis-benchmark sends: it counts commands and not seconds.
const COMMANDS_PER_MS: u64 = 60;
/// Out of how many keys: nearly the most that redis-benchmark can count to.
const REDIS_KEYS: &str = "2000000000";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    Echo,
    Single(SemelStore),
    Batched(SemelStore),
    /// `SET NX` on a Redis that keeps nothing on a disk.
    Redis,
}

impl Contestant {
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

pub(crate) fn run(args: &ClaimsArgs) -> Result<()> {
    let folder = TempFolder::under(args.folder.as_deref())?;
    let mut page = Page::new("server", include_str!("pages/server.md"), args)?;
    page.fact("filesystem", filesystem(folder.path(), "name a folder on a disk with --folder")?);
    let redis = start_redis()?;
    page.fact("Redis", crate::servers::redis_version(&redis).context("Redis does not answer")?);
    let semel = SemelProgram::new(args.semel.as_deref());
    semel.describe(&mut page);
    page.fact_other_processes();
    let cases = Contestant::ALL.map(|contestant| (contestant.case(), contestant)).into();
    drive(args.run.rounds, &[cases], &mut page.rows, &mut |case, contestant| {
        let server = match contestant {
            Contestant::Redis => return Ok(vec![(case, redis_window(&redis, args.window_ms)?)]),
            Contestant::Echo => Server::of_this_program(&["claims-echo"], &folder.fresh("server")?)?,
            // The real program, without tokens.
            Contestant::Single(store) | Contestant::Batched(store) => {
                semel.start(&["serve"], *store, &folder.fresh("server")?)?
            }
        };
        let span = Duration::from_millis(args.window_ms);
        let plan = Plan { port: server.port, pid: server.pid(), span, pace: Pace::Answered };
        Ok(vec![(case, window(*contestant, plan)?)])
    })?;
    page.bars = bars(&page.rows);
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

fn claim(number: u64) -> String {
    format!(r#"{{"scope":["acme"],"operation":"charge","name":"order-{number:012}","owner":"worker-7"}}"#)
}

fn complete(permit: &str) -> String {
    format!(r#"{{"permit":"{permit}","outcome":{OUTCOME}}}"#)
}

fn batch(items: impl Iterator<Item = String>) -> String {
    format!(r#"{{"items":[{}]}}"#, items.collect::<Vec<_>>().join(","))
}

fn post_to(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How many numbers a cycle of one connection takes.
fn width(contestant: Contestant) -> u64 {
    if matches!(contestant, Contestant::Batched(_)) { BATCH } else { 1 }
}

fn first(contestant: Contestant, number: u64) -> Vec<u8> {
    match contestant {
        Contestant::Echo | Contestant::Redis => post_to(ECHO_PATH, &claim(number)),
        Contestant::Single(_) => post_to("/v1/claim", &claim(number)),
        Contestant::Batched(_) => {
            post_to("/v1/claim/batch", &batch((0..width(contestant)).map(|more| claim(number + more))))
        }
    }
}

/// The second, from the answer to the first; none, if the cycle is over. Every key must have been granted.
fn second(contestant: Contestant, number: u64, answer: &[u8]) -> Result<Option<Vec<u8>>> {
    if contestant == Contestant::Echo {
        ensure!(answer == claim(number).as_bytes(), "the echo of {number} is {}", lossy(answer));
        return Ok(None);
    }
    let permits = permits(answer)?;
    let wanted = usize::try_from(width(contestant))?;
    ensure!(
        permits.len() == wanted && count(answer, RUN) == wanted,
        "{wanted} new keys were claimed, and the answer is {}",
        lossy(answer)
    );
    Ok(Some(match (contestant, permits.as_slice()) {
        (Contestant::Single(_), [permit]) => post_to("/v1/complete", &complete(permit)),
        (_, permits) => post_to("/v1/complete/batch", &batch(permits.iter().map(|permit| complete(permit)))),
    }))
}

fn last(contestant: Contestant, answer: &[u8]) -> Result<()> {
    let wanted = usize::try_from(width(contestant))?;
    ensure!(count(answer, DONE) == wanted, "{wanted} were completed, and the answer is {}", lossy(answer));
    Ok(())
}

fn permits(answer: &[u8]) -> Result<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = answer;
    while let Some(at) = find(rest, PERMIT) {
        rest = &rest[at + PERMIT.len()..];
        let Some(end) = rest.iter().position(|byte| *byte == b'"') else { bail!("a permit has no end") };
        found.push(std::str::from_utf8(&rest[..end]).context("a permit is text")?);
        rest = &rest[end..];
    }
    Ok(found)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|here| here == wanted)
}

fn count(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|here| *here == wanted).count()
}

/// Sends cycles for a while. The rate is of keys claimed and completed, or of echoes.
fn window(contestant: Contestant, plan: Plan) -> Result<Sample> {
    let next = Rc::new(Cell::new(0));
    let client = |_| Worker { contestant, next: Rc::clone(&next) };
    let mut sample = clients::window(plan, (0..CONNECTIONS).map(client).collect())?;
    let requests = sample.get(&Metric::PerSecond).map(|rate| rate * contestant.requests_per_cycle());
    sample.extend(requests.map(|rate| (Metric::RequestsPerSecond, rate)));
    Ok(sample)
}

struct Worker {
    contestant: Contestant,
    next: Rc<Cell<u64>>,
}

impl Client for Worker {
    async fn turn(&mut self, connection: &mut Connection) -> Result<u64> {
        let (contestant, width) = (self.contestant, width(self.contestant));
        let number = self.next.replace(self.next.get() + width);
        let (_, body) = connection.ask(&first(contestant, number), OK).await?;
        if let Some(next) = second(contestant, number, body)? {
            let (_, body) = connection.ask(&next, OK).await?;
            last(contestant, body)?;
        }
        Ok(width)
    }
}

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
    let cpu = crate::timing::Cpu::of(std::process::id())?;
    let line = ["-p", &port, "-c", &clients, "-P", "1", "-n", &count, "-r", REDIS_KEYS, "--csv"];
    let output = std::process::Command::new("redis-benchmark")
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
    let bar = |metric| {
        move |row: &Row| {
            let p99 = format!("p99 {:.1} ms", row.median(Metric::P99Us) / 1e3);
            let bar = ChartBar::of(row, metric, WHOLE, &p99);
            let (name, label) = row.case.contestant.split_once(", ").unwrap_or((&bar.name, &bar.name));
            (label.to_owned(), ChartBar { name: name.to_owned(), ..bar })
        }
    };
    let (title, axis) = ("Requests, one key each", "requests per second: more is better");
    let single = Panel::new(title, axis, page.rows.of(CYCLES).take(3), bar(Metric::RequestsPerSecond));
    let title = "Keys claimed and completed in batches of 100; SET NX";
    let axis = "cycles per second: more is better; p99 is of a batch";
    let batched = Panel::new(title, axis, page.rows.of(CYCLES).skip(3), bar(Metric::PerSecond));
    page.panel(single);
    page.panel(batched);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::served;

    const SINGLE: Contestant = Contestant::Single(SemelStore::Memory);

    fn measured(contestant: Contestant, router: Router) -> Result<Sample> {
        let plan = Plan {
            port: served(router),
            pid: std::process::id(),
            span: Duration::from_millis(60),
            pace: Pace::Answered,
        };
        window(contestant, plan)
    }

    fn answering(complete: &'static str) -> Router {
        let run = r#"{"decision":"run","id":"00","permit":"p1.a","attempt":1,"fence":1,"lease_ms":60000,"steps":[]}"#;
        Router::new()
            .route("/v1/claim", post(async move || run))
            .route("/v1/complete", post(async move || complete))
    }

    #[test]
    fn permits_are_taken_from_an_answer_in_their_order() {
        let answer = br#"{"decision":"run","id":"ab","permit":"p1.xy","attempt":1}"#;
        let next = second(SINGLE, 7, answer).unwrap().unwrap();
        assert!(lossy(&next).contains(r#"{"permit":"p1.xy","outcome":"#), "{}", lossy(&next));
        assert!(second(SINGLE, 7, br#"{"decision":"busy"}"#).is_err());
        assert!(last(SINGLE, br#"{"decision":"lost"}"#).is_err());
        last(SINGLE, br#"{"decision":"done","remembered_until":null}"#).unwrap();
    }

    #[test]
    fn an_echo_of_something_else_is_found_out() {
        assert_eq!(second(Contestant::Echo, 7, claim(7).as_bytes()).unwrap(), None);
        assert!(second(Contestant::Echo, 7, claim(8).as_bytes()).is_err());
    }

    #[test]
    fn a_window_counts_echoes_and_cycles() {
        let echo = measured(Contestant::Echo, echo()).unwrap();
        assert!(echo[&Metric::PerSecond] > 0.0 && echo[&Metric::P50Us] <= echo[&Metric::P99Us], "{echo:?}");
        let cycles = measured(SINGLE, answering(r#"{"decision":"done"}"#)).unwrap();
        assert!(cycles[&Metric::RequestsPerSecond] > cycles[&Metric::PerSecond], "{cycles:?}");
    }

    #[test]
    fn a_run_that_was_lost_is_found_out() {
        let error = measured(SINGLE, answering(r#"{"decision":"lost"}"#)).unwrap_err();
        assert!(format!("{error:#}").contains("lost"), "{error:#}");
    }

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
