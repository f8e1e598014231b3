//! A folder serves one store at a time.

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
