//! The measurements of stores on servers, every contestant of them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs the measurement with tiny numbers, and hands back what it printed and where it wrote.
fn measured(what: &str) -> (PathBuf, String) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{what}-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_semel-bench"))
        .args([what, "--keys", "1000", "--rounds", "1", "--window-ms", "30", "--results"])
        .arg(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (folder, String::from_utf8(output.stdout).unwrap())
}

/// Every contestant has a line of cycles and one of replays for each number of callers, and one of what was counted.
fn names_everyone(what: &str, contestants: &[&str], verdicts: usize) {
    let (folder, printed) = measured(what);
    for contestant in contestants {
        let start = format!("| {contestant} ");
        assert_eq!(
            printed.lines().filter(|line| line.starts_with(&start)).count(),
            7,
            "{contestant}: {printed}"
        );
    }
    let judged = printed.lines().filter(|line| line.ends_with("reached |")).count();
    assert_eq!(judged, verdicts, "{printed}");
    assert!(!printed.contains("NaN"), "{printed}");
    for extension in ["md", "svg", "json"] {
        assert!(folder.join(format!("{what}.{extension}")).is_file(), "{extension}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_measurement_on_postgres_names_everyone_and_judges_every_bar() {
    names_everyone("postgres", &["semel", "per call, pool of 32", "cratestack-sqlx"], 5);
}

#[test]
fn the_measurement_on_redis_names_everyone_and_judges_every_bar() {
    let contestants =
        ["semel; everysec", "SET NX, GET, SET; everysec", "semel; always", "SET NX, GET, SET; always"];
    names_everyone("redis", &contestants, 4);
}
