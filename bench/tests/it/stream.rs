//! The measurement of pipelines, every store and every batch.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn the_measurement_of_streams_names_every_store_and_judges_every_bar() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("stream-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_semel-bench"))
        .args(["stream", "--events", "1000", "--rounds", "1", "--window-ms", "30", "--folder"])
        .arg(&folder)
        .arg("--results")
        .arg(folder.join("results"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    for store in ["memory", "file", "PostgreSQL", "Redis, everysec"] {
        let start = format!("| {store} ");
        let lines = printed.lines().filter(|line| line.starts_with(&start)).count();
        assert_eq!(lines, 6, "three batches of new events, three of duplicates: {store}: {printed}");
    }
    assert_eq!(printed.lines().filter(|line| line.ends_with("reached |")).count(), 3, "{printed}");
    assert!(!printed.contains("NaN"), "{printed}");
    for extension in ["md", "svg", "json"] {
        assert!(folder.join(format!("results/stream.{extension}")).is_file(), "{extension}");
    }
    let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["results"], "the store is removed at the end");
    fs::remove_dir_all(folder).unwrap();
}
