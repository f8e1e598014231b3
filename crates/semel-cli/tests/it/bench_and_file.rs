//! `semel bench` and `semel file`.

use serde_json::Value;

use crate::binary::run as semel;

#[test]
fn bench_as_json_runs_every_key_once_and_replays() {
    let output = semel("bench --store memory: --keys 300 --seconds 0.05 --callers 3 --json");
    let json = output.json();
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
    assert_eq!(output.err, "", "no progress bar where there is no terminal");
    let table = output.fine();
    for line in ["cycle", "  claim", "  complete", "replay", "Every key ran once (100 runs)"] {
        assert!(table.lines().any(|found| found.starts_with(line)), "{line}: {table}");
    }
}

#[test]
fn a_store_in_a_folder_is_measured_verified_damaged_and_repaired() {
    let place = tempfile::tempdir().expect("a folder for a test");
    let (folder, copy) = (place.path().join("store"), place.path().join("copy"));
    let (folder, copy) = (folder.display(), copy.display());
    semel(&format!("bench --store file:{folder} --keys 200 --seconds 0 --callers 8 --json")).fine();

    let whole = semel(&format!("file verify {folder} --json")).json();
    assert_eq!((&whole["records"], &whole["whole"]), (&Value::from(200), &Value::from(true)));

    let log = place.path().join("store/00000001.log");
    let mut bytes = std::fs::read(&log).expect("is there");
    *bytes.get_mut(5_000).expect("is long enough") ^= 0xff;
    std::fs::write(&log, bytes).expect("can be written");
    let said = semel(&format!("stats --store file:{folder}")).failed();
    for part in ["00000001.log", "at byte", "semel file verify", "semel file repair"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let damaged = semel(&format!("file verify {folder}"));
    assert!(damaged.out.contains("00000001.log at byte"), "{}", damaged.out);
    damaged.failed();

    // Something is missing, and somebody must read that.
    semel(&format!("file repair {folder} --to {copy}")).failed();
    let copied = semel(&format!("file verify {copy} --json")).json();
    assert!(copied["records"].as_u64().is_some_and(|records| records >= 199), "{copied}");
    let taken = semel(&format!("file repair {folder} --to {copy}")).failed();
    assert!(taken.contains("give an empty folder"), "{taken}");
}

#[test]
fn bench_refuses_a_folder_that_holds_anything_and_touches_nothing() {
    let place = tempfile::tempdir().expect("a folder for a test");
    let folder = place.path().join("store");
    let bench = || semel(&format!("bench --store file:{} --keys 20 --seconds 0", folder.display()));
    bench().fine();
    let content = || {
        let names = std::fs::read_dir(&folder).expect("is there").flatten().map(|entry| entry.path());
        let mut files: Vec<_> =
            names.map(|path| (std::fs::read(&path).expect("can be read"), path)).collect();
        files.sort();
        files
    };
    let before = content();
    let said = bench().failed();
    for part in ["store: holds", "nothing was touched", "give an empty or missing folder"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(before == content(), "a file was changed");
}
