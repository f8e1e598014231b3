//! Folders that semel 0.1 wrote: read, served and gone on with.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use semel::store::Store;
use semel_file::FileStore;
use semel_file::check::verify;
use semel_testkit::format_1::{read_all, read_what_was_served, serve};
use tempfile::TempDir;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// A copy of a fixture: opening writes.
fn unpacked(fixture: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let archive = format!("{FIXTURES}/{fixture}.tar.gz");
    let tar = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(tar.success(), "{tar}");
    folder
}

fn open(folder: &Path) -> Arc<dyn Store> {
    Arc::new(FileStore::builder(folder).open().unwrap())
}

async fn is_read_and_served(folder: &Path) {
    let store = open(folder);
    assert_eq!(read_all(&store).await, Ok(()));
    assert_eq!(serve(&store).await, Ok(()));
    drop(store);
    let store = open(folder);
    assert_eq!(read_what_was_served(&store).await, Ok(()));
}

#[tokio::test]
async fn a_folder_that_0_1_closed_is_read_and_served() {
    is_read_and_served(&unpacked("format-1-stopped").path().join("file-stopped")).await;
}

#[tokio::test]
async fn a_folder_that_0_1_left_when_it_was_killed_is_read_and_served() {
    is_read_and_served(&unpacked("format-1-killed").path().join("file-killed")).await;
}

#[test]
fn a_folder_of_0_1_is_whole_without_a_tail_and_has_one_from_its_first_opening_on() {
    for (fixture, name) in [("format-1-stopped", "file-stopped"), ("format-1-killed", "file-killed")] {
        let unpacked = unpacked(fixture);
        let folder = unpacked.path().join(name);
        let tail = folder.join("semel.tail");
        assert!(verify(&folder, |_, _| {}).unwrap().is_whole() && !tail.exists(), "{name}");
        FileStore::open(&folder).unwrap().close().unwrap();
        assert!(verify(&folder, |_, _| {}).unwrap().is_whole() && tail.exists(), "{name}");
        // From then on it vouches for what 0.1 wrote, too.
        let log = std::fs::OpenOptions::new().write(true).open(folder.join("00000001.log")).unwrap();
        log.set_len(1_024).unwrap();
        let error = FileStore::open(&folder).unwrap_err().to_string();
        assert!(error.contains("00000001.log is cut short"), "{error}");
        assert!(!verify(&folder, |_, _| {}).unwrap().is_whole(), "{name}");
    }
}
