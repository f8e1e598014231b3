//! Hints help and nothing more: the store is the same with them, without them, and with any of them damaged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use semel::record::Keep;
use semel::store::{Store, Swap, Swaps};
use semel::{ErrorKind, Key, Outcome};
use semel_file::{FileStore, FileStoreBuilder};
use semel_testkit::sample;
use tempfile::TempDir;

use crate::sync::{loaded, ready};

const RECORDS: usize = 900;
const HEADER_BYTES: usize = 64;

fn key(number: usize) -> Key {
    Key::new("hint", &format!("order-{number}")).unwrap()
}

fn swap(number: usize) -> Swap {
    let write = sample::done(&sample::ask(&key(number)), &Outcome::success(vec![7; 100])).unwrap();
    Swap { expected: None, next: write.next, keep: Keep::For(Duration::from_hours(1)) }
}

fn builder(folder: &TempDir) -> FileStoreBuilder {
    FileStore::builder(folder).segment_bytes(64 << 10)
}

/// A store of several sealed segments that was closed.
fn written() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = builder(&folder).inline().open().unwrap();
    for first in (0..RECORDS).step_by(20) {
        ready(store.swap((first..first + 20).map(swap).collect::<Swaps>())).unwrap();
    }
    store.close().unwrap();
    assert!(files(folder.path(), "hint").len() >= 3);
    folder
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    paths.sort();
    paths
}

fn contents(folder: &TempDir) -> Vec<Vec<u8>> {
    files(folder.path(), "hint").iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn has_all(folder: &TempDir, open: impl FnOnce(FileStoreBuilder) -> FileStore) {
    let store = open(builder(folder).inline());
    let found = loaded(&store, (0..RECORDS).map(|number| key(number).id()).collect()).unwrap();
    assert_eq!(found.value.iter().flatten().count(), RECORDS);
    store.close().unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_sealed_segment_without_a_hint_is_walked_and_gets_the_same_one_again() {
    let folder = written();
    let before = contents(&folder);
    let hints = files(folder.path(), "hint");
    std::fs::remove_file(&hints[0]).unwrap();
    flip(&hints[1], 8);
    std::fs::write(&hints[2], b"").unwrap();
    has_all(&folder, |builder| builder.open().unwrap());
    assert_eq!(contents(&folder), before);
}

#[test]
fn a_hint_that_is_damaged_in_any_part_is_made_anew_and_nothing_is_lost() {
    let folder = written();
    let before = contents(&folder);
    let hint = &files(folder.path(), "hint")[1];
    let bytes = before[1].len();
    for at in (0..bytes).step_by(bytes / 37) {
        flip(hint, at);
        has_all(&folder, |builder| builder.open().unwrap());
        assert_eq!(contents(&folder), before, "byte {at}");
    }
}

#[test]
fn two_threads_load_what_one_does() {
    let folder = written();
    std::fs::remove_file(&files(folder.path(), "hint")[1]).unwrap();
    let store = builder(&folder).open().unwrap();
    assert_eq!(store.records(), RECORDS);
    store.close().unwrap();
    has_all(&folder, |builder| builder.open().unwrap());
}

#[test]
fn a_hint_does_not_hide_that_the_end_of_its_segment_is_damaged() {
    let folder = written();
    let segment = &files(folder.path(), "log")[1];
    let bytes = std::fs::read(segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    flip(segment, end);
    let error = builder(&folder).inline().open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("00000002.log"), "{error}");
}

#[test]
fn damage_in_the_middle_of_a_segment_with_a_hint_is_found_by_the_one_that_reads_it() {
    let folder = written();
    flip(&files(folder.path(), "log")[1], HEADER_BYTES + 80);
    let store = builder(&folder).inline().open().unwrap();
    let answer = ready(store.load((0..RECORDS).map(|number| key(number).id()).collect())).unwrap();
    assert_eq!(answer.value.iter().filter(|found| found.is_err()).count(), 1);
}
