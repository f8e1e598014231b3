//! The measurements from outside, with tiny numbers: that they run to their end, name every contestant and judge every bar.

#![cfg(test)]

use std::fs;
use std::path::PathBuf;

/// A finished run, and its folder, which is on a disk wherever this is built.
struct Run {
    folder: PathBuf,
    printed: String,
}

impl Run {
    /// Runs a measurement with these arguments in a new folder: stores go there with `--folder FOLDER`, pages to `results`.
    fn of(name: &str, arguments: &[&str]) -> Self {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_semel-bench"))
            .args(arguments)
            .current_dir(&folder)
            .env("CARGO_MANIFEST_DIR", &folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("; profile: "), "{printed}");
        Self { folder, printed }
    }

    /// How many lines of the page start with this contestant.
    fn lines(&self, contestant: &str) -> usize {
        self.printed.lines().filter(|line| line.starts_with(&format!("| {contestant} "))).count()
    }

    /// The page judges so many bars, has numbers only, and was written; nothing else is left over.
    fn ends_well(self, page: &str, bars: usize) {
        let Self { folder, printed } = self;
        assert_eq!(printed.lines().filter(|line| line.ends_with("reached |")).count(), bars, "{printed}");
        // A tiny window of the durable store may end before a slow disk has answered.
        assert!(page == "file" || !printed.contains("NaN"), "{printed}");
        for extension in ["md", "svg", "json"] {
            assert!(folder.join(format!("results/{page}.{extension}")).is_file(), "{extension}");
        }
        let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(kept, ["results"], "the stores are removed at the end");
        fs::remove_dir_all(folder).unwrap();
    }
}

const FILE: [&str; 9] = ["file", "--keys", "1000", "--rounds", "1", "--window-ms", "30", "--folder", "."];

#[test]
fn the_measurement_of_the_memory_store_names_everyone_and_judges_every_bar() {
    let sizes = ["--keys", "1000", "--rounds", "1", "--window", "1000", "--bound", "10000"];
    let run = Run::of("memory", &[["memory"].as_slice(), &sizes].concat());
    for (contestant, lines) in
        [("engine", 4), ("store alone", 5), ("DashMap, as usually written", 5), ("DashMap, lean", 5)]
    {
        assert_eq!(run.lines(contestant), lines, "{contestant}: {}", run.printed);
    }
    run.ends_well("memory", 9);
}

#[test]
fn every_part_of_the_durable_store_runs_to_its_end_and_names_every_contestant() {
    let run = Run::of("all", &FILE);
    let databases = ["fjall", "redb", "SQLite"].map(|name| format!("{name}, group commit"));
    let others = ["semel file", "semel file, engine", "SQLite, per call"].map(str::to_owned);
    for contestant in databases.into_iter().chain(others) {
        assert!(run.lines(&contestant) > 0, "{contestant}: {}", run.printed);
    }
    for part in ["Cycles", "The disk alone", "Waiting", "Opening", "Removing", "Growth", "Disk in", "Bars"] {
        assert!(run.printed.contains(part), "{part}: {}", run.printed);
    }
    run.ends_well("file", 23);
}

#[test]
fn a_part_alone_is_printed_and_takes_the_place_of_nothing() {
    let Run { folder, printed } = Run::of("part", &[FILE.as_slice(), &["--only", "expiry"]].concat());
    assert!(printed.contains("Removing") && !printed.contains("Growth"), "{printed}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(folder).unwrap();
}

/// Every contestant has a line of cycles and one of replays for each number of callers, and one of what was counted; on
/// PostgreSQL also one of what its cycles cost the server for each number of callers.
fn names_everyone(server: &str, contestants: &[&str], (lines, bars): (usize, usize)) {
    let run = Run::of(server, &[server, "--keys", "1000", "--rounds", "1", "--window-ms", "300"]);
    for contestant in contestants {
        assert_eq!(run.lines(contestant), lines, "{contestant}: {}", run.printed);
    }
    run.ends_well(server, bars);
}

#[test]
fn the_measurement_on_postgres_names_everyone_and_judges_every_bar() {
    names_everyone("postgres", &["semel", "per call, pool of 32", "cratestack-sqlx"], (10, 6));
}

#[test]
fn the_growth_of_tables_on_postgres_is_measured_alone() {
    let part =
        ["postgres", "--only", "growth", "--growth", "1000,3000", "--rounds", "1", "--window-ms", "300"];
    let Run { folder, printed } = Run::of("postgres-growth", &part);
    assert!(printed.contains("Growth") && !printed.contains("Replays"), "{printed}");
    assert!(printed.contains("| 1,000 |") && printed.contains("| 3,000 |"), "{printed}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(folder).unwrap();
}

#[test]
fn the_measurement_on_redis_names_everyone_and_judges_every_bar() {
    let contestants =
        ["semel; everysec", "SET NX, GET, SET; everysec", "semel; always", "SET NX, GET, SET; always"];
    names_everyone("redis", &contestants, (7, 4));
}

/// Every layer; proxies need a release build of the main workspace, and are left out here.
#[test]
fn the_measurement_over_http_names_everyone_and_judges_every_bar() {
    let part = ["http", "--only", "layer", "--rounds", "1", "--window-ms", "400"];
    let run = Run::of("http", &[part.as_slice(), &["--folder", ".", "--results", "results"]].concat());
    assert_eq!(run.lines("bare handler"), 1, "{}", run.printed);
    assert_eq!(run.lines("semel, memory store"), 3, "{}", run.printed);
    for twice in ["semel, file store", "axum-idempotent", "cratestack-axum, Redis", "cratestack-axum, a map"]
    {
        assert_eq!(run.lines(twice), 2, "{twice}: {}", run.printed);
    }
    run.ends_well("http", 10);
}

#[test]
fn the_measurement_of_streams_names_every_store_and_judges_every_bar() {
    let arguments = ["stream", "--events", "1000", "--rounds", "1", "--window-ms", "30", "--folder", "."];
    let run = Run::of("stream", &arguments);
    for store in ["memory", "file", "PostgreSQL", "Redis, everysec"] {
        let lines = run.lines(store);
        assert_eq!(lines, 6, "three batches of new events, three of duplicates: {store}: {}", run.printed);
    }
    run.ends_well("stream", 3);
}
