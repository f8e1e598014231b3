//! What a person at a terminal sees and is asked, on a pseudo terminal of `script`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::binary::on;
use crate::place::{Place, id};
use crate::records::{fill, key};

/// Runs a line on a terminal so wide, and types an answer. What was shown, and how it ended.
fn at_a_terminal(
    place: &Place,
    line: &str,
    columns: u16,
    answer: &str,
    no_color: Option<&str>,
) -> (String, Option<i32>) {
    let binary = env!("CARGO_BIN_EXE_semel");
    let line = format!("stty cols {columns} rows 30; exec {binary} {line}");
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env("SEMEL_STORE", place.url())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is there");
    child.stdin.take().expect("is piped").write_all(answer.as_bytes()).expect("is typed");
    let output = child.wait_with_output().expect("ends");
    (String::from_utf8(output.stdout).expect("is text"), output.status.code())
}

#[test]
fn whoever_says_no_changes_nothing_and_whoever_says_yes_does() {
    let place = Place::file();
    fill(&place);
    let line = format!("keys release {}", id(&key("order-3")));
    let state = || on(&place, &format!("keys show {} --json", id(&key("order-3")))).json()["state"].clone();
    for answer in ["n\n", "\n", "maybe\n"] {
        let (shown, code) = at_a_terminal(&place, &line, 120, answer, None);
        assert!(shown.contains("Release it? [y/N]") && shown.contains("nothing was changed"), "{shown}");
        assert_eq!((code, state()), (Some(1), "running".into()), "{answer}");
    }
    let (shown, code) = at_a_terminal(&place, &line, 120, "y\n", None);
    assert!(
        shown.contains("Releasing does not stop the worker")
            && shown.contains("Released acme/us charge order-3"),
        "{shown}"
    );
    assert_eq!((code, state()), (Some(0), "released".into()));
}

#[test]
fn a_table_fits_the_terminal_and_a_pipe_gets_all_of_it() {
    let place = Place::file();
    place.with(async |semel| {
        let key =
            semel::Key::scoped(["a-rather-long-tenant"], "charge", &"order-".repeat(20)).expect("is fine");
        crate::records::run(&semel, semel::Claim::new(&key)).await;
    });
    let (shown, _) = at_a_terminal(&place, "keys list", 92, "", Some("1"));
    assert!(shown.contains('…'), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 92), "{shown}");
    let piped = on(&place, "keys list").fine();
    assert!(piped.contains(&"order-".repeat(20)), "{piped}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::file();
    fill(&place);
    let (coloured, _) = at_a_terminal(&place, "keys list --state held", 120, "", None);
    assert!(coloured.contains("\u{1b}[33mheld"), "{coloured}");
    let (plain, _) = at_a_terminal(&place, "keys list --state held", 120, "", Some("1"));
    assert!(plain.contains("held") && !plain.contains("\u{1b}["), "{plain}");
    assert!(!on(&place, "keys list --state held").fine().contains('\u{1b}'));
}

#[test]
fn watching_draws_over_what_was_drawn_before() {
    let place = Place::file();
    fill(&place);
    let (shown, code) = at_a_terminal(&place, "watch --looks 2 --every 10ms", 100, "", None);
    assert_eq!((shown.matches("running").count(), code), (2, Some(0)), "{shown}");
    assert!(shown.contains("\u{1b}[9A"), "{shown:?}");
}
