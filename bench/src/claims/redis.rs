//! `SET NX` by redis-benchmark, on a server that keeps nothing on a disk.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use test_services::Redis;

use super::entry::CONNECTIONS;
use super::load::Window;
use crate::http::Cpu;

/// How many commands it sends: redis-benchmark counts commands and not seconds.
const COMMANDS_PER_MS: u64 = 60;

/// Out of how many keys: the most that redis-benchmark can count to, nearly.
const KEYS: &str = "2000000000";

/// One that appends nothing to any file.
pub(super) fn start() -> Result<Redis> {
    Redis::start_with(&[("appendonly", "no"), ("appendfsync", "no")])
}

/// Sends for about so long.
#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
pub(super) fn window(redis: &Redis, span_ms: u64) -> Result<Window> {
    redis.ask(&["FLUSHALL"])?;
    let commands = (span_ms * COMMANDS_PER_MS).max(1_000);
    let (port, clients, count) = (redis.port().to_string(), CONNECTIONS.to_string(), commands.to_string());
    let cpu = Cpu::of(std::process::id())?;
    let line = ["-p", &port, "-c", &clients, "-P", "1", "-n", &count, "-r", KEYS, "--csv"];
    let output = Command::new("redis-benchmark")
        .args(line)
        .args(["SET", "key:__rand_int__", "worker-7", "NX"])
        .output()
        .context("redis-benchmark is not here: install redis-tools")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "redis-benchmark failed: {text}");
    let kept: u64 = redis.ask(&["DBSIZE"])?.first().and_then(|size| size.parse().ok()).unwrap_or(0);
    // Few of so many random keys are the same.
    ensure!(kept * 100 > commands * 99, "{commands} keys were set, and {kept} are there");
    let client = cpu.until_now()?;
    let [cycles, p50, p99] = numbers(&text)?;
    Ok(Window {
        cycles,
        p50_us: p50 * 1e3,
        p99_us: p99 * 1e3,
        server_cpu_us: f64::NAN,
        client_cpu_us: client.as_secs_f64() * 1e6 / commands as f64,
    })
}

/// Commands a second, and milliseconds at the median and at the 99th of a hundred, by the names in the heading.
fn numbers(text: &str) -> Result<[f64; 3]> {
    let rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| line.starts_with('"'))
        .map(|line| line.split("\",\"").map(|cell| cell.trim_matches('"').to_owned()).collect())
        .collect();
    let (heading, values) = rows.first().zip(rows.last()).with_context(|| format!("no table: {text}"))?;
    let of = |name: &str| -> Result<f64> {
        let at =
            heading.iter().position(|cell| cell == name).with_context(|| format!("no {name} in {text}"))?;
        values
            .get(at)
            .and_then(|value| value.parse().ok())
            .with_context(|| format!("{name} is no number: {text}"))
    };
    Ok([of("rps")?, of("p50_latency_ms")?, of("p99_latency_ms")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"SET a, b NX\",\"51.5\",\"0.1\",\"0.2\",\"0.3\"\n";
        assert_eq!(format!("{:?}", numbers(text).unwrap()), "[51.5, 0.2, 0.3]");
        assert!(numbers("").is_err());
    }
}
