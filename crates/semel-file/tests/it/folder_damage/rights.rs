//! Files that the process may not read or write.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use super::sample::{Ending, Sample, copy, names, open, scratch};
use super::verdict::is_fit;

/// The folder that the other process opens.
const VARIABLE: &str = "SEMEL_TEST_RIGHTS";
const CHILD: &str = "folder_damage::rights::opened_by_a_process_without_rights";
/// A user that owns nothing: root may read every file, whatever its mode.
const OTHER_USER: u32 = 65_534;

/// Not a test of its own: what [`opened`] runs as another user.
#[test]
fn opened_by_a_process_without_rights() {
    if let Ok(folder) = std::env::var(VARIABLE) {
        println!("{}", said(Path::new(&folder)));
    }
}

fn said(folder: &Path) -> String {
    match open(folder) {
        Ok(store) => format!("OPENED with {} records.", store.records()),
        Err(error) => format!("REFUSED {error}"),
    }
}

/// What an opening by a user without special rights says; `None` if there is no way to be one.
fn opened(folder: &Path) -> Option<String> {
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return Some(said(folder));
    }
    let own = |path: &Path| chown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    own(folder);
    for name in names(folder) {
        own(&folder.join(name));
    }
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(std::env::current_exe().ok()?)
        .args(["--exact", CHILD, "--nocapture"])
        .env(VARIABLE, folder)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text
        .lines()
        .find_map(|line| line.find("OPENED").or_else(|| line.find("REFUSED")).map(|at| &line[at..]));
    said.map(str::to_owned)
}

#[test]
fn a_file_without_rights_is_named_or_not_needed() {
    let sample = Sample::new(30, Ending::Closed);
    let records = sample.acknowledged.len();
    let whole = format!("OPENED with {records} records.");
    let changed = |name: Option<&str>| {
        let folder = scratch();
        copy(sample.folder.path(), folder.path());
        if let Some(name) = name {
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o000)).unwrap();
        }
        opened(folder.path())
    };
    let Some(said) = changed(None) else {
        println!("skipped: this user has all rights, and `setpriv` cannot run the tests as another");
        return;
    };
    assert_eq!(said, whole);
    for name in names(sample.folder.path()) {
        let said = changed(Some(&name)).unwrap();
        let is_refused = said.strip_prefix("REFUSED ").is_some_and(|message| {
            let error = semel::Error::new(semel::ErrorKind::Unavailable, message);
            is_fit(&error, &[&name]).is_ok()
        });
        println!("{name}: {said}");
        assert!(is_refused || (said == whole && name.contains(".hint")), "{name}: {said}");
    }
}
