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
    assert!(error.contains("available are `memory:`"), "{error}");
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

#[test]
fn a_store_in_a_folder_is_measured_verified_damaged_and_repaired() {
    let place = tempfile::tempdir().expect("a folder for a test");
    let (folder, copy) = (place.path().join("store"), place.path().join("copy"));
    let (folder, copy) = (folder.display(), copy.display());
    let measured = semel(&format!("bench --store file:{folder} --keys 200 --seconds 0 --callers 8 --json"));
    assert!(measured.status.success(), "{}", stderr(&measured));

    let whole = semel(&format!("file verify {folder} --json"));
    assert!(whole.status.success(), "{}", stderr(&whole));
    let whole: Value = serde_json::from_str(&stdout(&whole)).expect("is JSON");
    assert_eq!((&whole["records"], &whole["whole"]), (&Value::from(200), &Value::from(true)));

    let log = place.path().join("store/00000001.log");
    let mut bytes = std::fs::read(&log).expect("is there");
    *bytes.get_mut(5_000).expect("is long enough") ^= 0xff;
    std::fs::write(&log, bytes).expect("can be written");
    let refused = semel(&format!("bench --store file:{folder} --keys 1 --seconds 0"));
    let said = stderr(&refused);
    for part in ["00000001.log", "at byte", "semel file verify", "semel file repair"] {
        assert!(!refused.status.success() && said.contains(part), "{part}: {said}");
    }
    let damaged = semel(&format!("file verify {folder}"));
    assert_eq!(damaged.status.code(), Some(1));
    assert!(stdout(&damaged).contains("00000001.log at byte"), "{}", stdout(&damaged));

    let repaired = semel(&format!("file repair {folder} --to {copy}"));
    assert_eq!(repaired.status.code(), Some(1), "something is missing, and somebody must read that");
    let copied = semel(&format!("file verify {copy} --json"));
    assert!(copied.status.success(), "{}", stderr(&copied));
    let copied: Value = serde_json::from_str(&stdout(&copied)).expect("is JSON");
    assert!(copied["records"].as_u64().is_some_and(|records| records >= 199), "{copied}");
    let taken = semel(&format!("file repair {folder} --to {copy}"));
    assert!(stderr(&taken).contains("give an empty folder"), "{}", stderr(&taken));
}
