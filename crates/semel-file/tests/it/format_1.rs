//! Folders that semel 0.1 wrote: read, served and gone on with.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use semel::store::Store;
use semel_file::FileStore;
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
