//! The measurement over HTTP, every layer of it; proxies need a release build of the main workspace, and are left out here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn the_measurement_over_http_names_everyone_and_judges_every_bar() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("http-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_semel-bench"))
        .args(["http", "--only", "layer", "--rounds", "1", "--window-ms", "400", "--folder"])
        .arg(&folder)
        .arg("--results")
        .arg(folder.join("results"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = |contestant: &str| {
        let start = format!("| {contestant} ");
        printed.lines().filter(|line| line.starts_with(&start)).count()
    };
    assert_eq!(lines("bare handler"), 1, "{printed}");
    assert_eq!(lines("semel, memory store"), 3, "{printed}");
    for twice in ["semel, file store", "axum-idempotent", "cratestack-axum, Redis", "cratestack-axum, a map"]
    {
        assert_eq!(lines(twice), 2, "{twice}: {printed}");
    }
    assert_eq!(printed.lines().filter(|line| line.ends_with("reached |")).count(), 10, "{printed}");
    assert!(!printed.contains("NaN"), "{printed}");
    for extension in ["md", "svg", "json"] {
        assert!(folder.join(format!("results/http.{extension}")).is_file(), "{extension}");
    }
    let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["results"], "stores are removed at the end");
    fs::remove_dir_all(folder).unwrap();
}
