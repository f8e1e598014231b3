//! The real binary, run as a person or a script would.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say so")]

use std::process::{Command, Output};

use serde_json::Value;

fn semel(line: &str) -> Output {
    let args = line.split(' ').filter(|word| !word.is_empty());
    Command::new(env!("CARGO_BIN_EXE_semel")).args(args).output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("is text")
}

#[test]
fn help_says_what_semel_is_and_names_every_command() {
    let output = semel("--help");
    assert!(output.status.success());
    let help = stdout(&output);
    for part in ["makes work happen once", "bench", "Examples:", "semel bench --store memory:"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn version_is_the_one_of_the_crate() {
    let output = semel("--version");
    assert_eq!(stdout(&output).trim(), format!("semel {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_store_that_is_not_there_is_refused_with_what_is() {
    let output = semel("bench --store redis://localhost");
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("no store for `redis:`"), "{error}");
    assert!(error.contains("available is `memory:`"), "{error}");
    assert_eq!(stdout(&output), "");
}

#[test]
fn bench_as_json_runs_every_key_once_and_replays() {
    let output = semel("bench --store memory: --keys 300 --seconds 0.05 --callers 3 --json");
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!((&json["runs"], &json["keys"]), (&Value::from(300), &Value::from(300)));
    for number in ["/replays", "/cycles_per_second", "/replays_per_second", "/latency_us/claim/p50"] {
        let found = json.pointer(number).and_then(Value::as_f64);
        assert!(found.is_some_and(|found| found > 0.0), "{number}: {json}");
    }
    for call in ["claim", "complete", "replay"] {
        let span = |name: &str| json["latency_us"][call][name].as_f64().expect("is a number");
        assert!(span("p50") <= span("p99") && span("p99") <= span("max"), "{call}: {json}");
    }
}

#[test]
fn bench_as_a_table_shows_cycles_and_replays() {
    let output = semel("bench --keys 100 --seconds 0 --callers 1");
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    for line in ["cycle", "  claim", "  complete", "replay", "Every key ran once (100 runs)"] {
        assert!(table.lines().any(|found| found.starts_with(line)), "{line}: {table}");
    }
    assert_eq!(stderr(&output), "", "no progress bar where there is no terminal");
}
