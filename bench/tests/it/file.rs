//! The measurement of the durable store, every part and every contestant of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

const CONTESTANTS: [&str; 6] = [
    "semel file",
    "semel file, engine",
    "fjall, group commit",
    "redb, group commit",
    "SQLite, group commit",
    "SQLite, per call",
];

/// A folder that is on a disk wherever this is built.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the measurement with tiny numbers, and hands back what it printed.
fn measured(name: &str, more: &[&str]) -> (PathBuf, String) {
    let folder = folder(name);
    let output = Command::new(env!("CARGO_BIN_EXE_semel-bench"))
        .args(["file", "--keys", "1000", "--rounds", "1", "--window-ms", "30"])
        .arg("--folder")
        .arg(&folder)
        .args(more)
        .env("CARGO_MANIFEST_DIR", &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (folder, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_part_runs_to_its_end_and_names_every_contestant() {
    let (folder, printed) = measured("all", &[]);
    for contestant in CONTESTANTS {
        assert!(printed.contains(&format!("| {contestant} ")), "{contestant}: {printed}");
    }
    for part in ["Cycles", "The disk alone", "Opening", "Removing", "Growth", "Disk in", "Bars"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let verdicts = printed.lines().filter(|line| line.ends_with("reached |")).count();
    assert_eq!(verdicts, 11, "{printed}");
    for file in ["file.md", "file.svg", "file.json"] {
        assert!(folder.join("results").join(file).is_file(), "{file}");
    }
    let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["results"], "the stores are removed at the end");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_part_alone_is_printed_and_takes_the_place_of_nothing() {
    let (folder, printed) = measured("part", &["--only", "expiry"]);
    assert!(printed.contains("Removing") && !printed.contains("Growth"), "{printed}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(folder).unwrap();
}
