//! What is said before any store is asked, or when it cannot be.

use std::path::Path;

use crate::binary::{on, ran, run as semel_says, semel};
use crate::place::Place;

#[test]
fn help_says_what_semel_is_and_names_every_command() {
    let help = semel_says("--help").fine();
    for part in [
        "makes work happen once",
        "proxy",
        "serve",
        "token",
        "demo",
        "consume",
        "offsets",
        "receipts",
        "keys",
        "stats",
        "watch",
        "sweep",
        "check",
        "migrate",
        "export",
        "import",
        "bench",
        "file",
        "completions",
        "man",
        "Examples:",
        "semel bench --store memory:",
        "SEMEL_STORE",
        "redis+cluster://",
        "code 0",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn every_command_that_does_something_teaches_by_example() {
    for command in [
        "proxy",
        "serve",
        "token new",
        "token digest",
        "demo",
        "consume",
        "offsets",
        "offsets move",
        "receipts",
        "receipts show",
        "receipts record",
        "receipts release",
        "keys list",
        "keys show",
        "keys release",
        "keys resolve",
        "stats",
        "watch",
        "sweep",
        "check",
        "migrate",
        "export",
        "import",
        "bench",
        "completions",
        "man",
    ] {
        let help = semel_says(&format!("{command} --help")).fine();
        assert!(help.contains("Examples:\n  ") && help.contains("semel "), "{command}: {help}");
    }
}

#[test]
fn version_is_the_one_of_the_crate() {
    assert_eq!(semel_says("--version").fine().trim(), format!("semel {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_store_that_nobody_knows_is_refused_with_what_there_is() {
    let error = semel_says("stats --store mysql://localhost").refused();
    assert!(error.contains("no store for `mysql:`") && error.contains("`postgres://"), "{error}");
    let error = ran(semel().arg("stats").env("SEMEL_STORE", "nowhere")).refused();
    assert!(error.contains("SEMEL_STORE"), "{error}");
}

#[test]
fn a_folder_that_is_no_store_is_refused_and_not_made_one() {
    let place = tempfile::tempdir().expect("a folder for a test");
    for command in ["stats", "keys list", "sweep", "watch", "check", "export", "keys show 3f2a9c0d"] {
        let words = command.split(' ');
        let error = ran(semel().args(words).current_dir(place.path())).failed();
        for part in ["file:./semel-data", "is not there", "--store URL or SEMEL_STORE"] {
            assert!(error.contains(part), "{command}: {error}");
        }
    }
    assert!(!place.path().join("semel-data").exists());
}

#[test]
fn a_folder_that_a_process_holds_is_refused_with_that_process() {
    let place = Place::file();
    let error = place.with(async |_| on(&place, "keys list").failed());
    let this = format!("in use by process {}", std::process::id());
    assert!(error.contains(&this) && error.contains("stop that one"), "{error}");
}

#[test]
fn a_store_in_memory_cannot_be_looked_at_from_elsewhere() {
    let error = semel_says("stats --store memory:").failed();
    assert!(error.contains("lives and dies inside one process"), "{error}");
}

#[test]
fn no_error_shows_a_password() {
    for url in [
        "postgres://app:s3cret@127.0.0.1:1/semel",
        "redis://:s3cret@127.0.0.1:1",
        "redis+cluster://:s3cret@127.0.0.1:1",
    ] {
        let said = ran(semel().arg("stats").env("SEMEL_STORE", url));
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(":***@127.0.0.1:1"), "{}", said.err);
        assert!(!said.err.contains("s3cret") && !said.out.contains("s3cret"), "{}", said.err);
    }
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = semel_says(&format!("completions {shell}")).fine();
        assert!(
            script.contains("semel") && script.contains("resolve") && script.contains("outcome-file"),
            "{shell}"
        );
    }
    semel_says("completions cmd").refused();
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let page = semel_says("man").fine();
    assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
    let folder = tempfile::tempdir().expect("a folder for a test");
    semel_says(&format!("man --to {}", folder.path().display())).fine();
    let is_there = |name: &str| Path::new(folder.path()).join(name).is_file();
    for name in ["semel.1", "semel-keys-list.1", "semel-keys-resolve.1", "semel-export.1", "semel-check.1"] {
        assert!(is_there(name), "{name}");
    }
}
