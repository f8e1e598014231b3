//! A folder serves one store at a time.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use semel::ErrorKind;
use semel_file::FileStore;

#[test]
fn a_folder_that_is_in_use_is_refused_by_name_and_process() {
    let folder = tempfile::tempdir().unwrap();
    let first = FileStore::open(folder.path()).unwrap();
    let error = FileStore::open(folder.path()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let message = error.to_string();
    for part in [&*folder.path().to_string_lossy(), "in use", &std::process::id().to_string()] {
        assert!(message.contains(part), "{message}");
    }
    drop(first);
}

#[test]
fn a_folder_is_free_once_its_store_is_closed_or_dropped() {
    let folder = tempfile::tempdir().unwrap();
    FileStore::open(folder.path()).unwrap().close().unwrap();
    drop(FileStore::open(folder.path()).unwrap());
    FileStore::open(folder.path()).unwrap().close().unwrap();
}

#[test]
fn a_folder_whose_lock_was_moved_away_or_removed_is_still_in_use() {
    let folder = tempfile::tempdir().unwrap();
    for life in ["new", "opened again"] {
        let first = FileStore::open(folder.path()).unwrap();
        let lock = folder.path().join("lock");
        fs::rename(&lock, folder.path().join("lock.old")).unwrap();
        for _ in 0..2 {
            let error = FileStore::open(folder.path()).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{life}");
            assert!(error.to_string().contains("in use by another process"), "{life}: {error}");
            drop(fs::remove_file(&lock));
        }
        drop(first);
    }
}

#[test]
fn new_folders_and_files_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a/b");
    FileStore::open(&folder).unwrap().close().unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&root.path().join("a")), mode(&folder)), (0o700, 0o700));
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
