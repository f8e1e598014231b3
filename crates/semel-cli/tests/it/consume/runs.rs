//! What becomes of events, by how their command ends.

use serde_json::Value;

use super::feed::{Feed, consume, consumed, length, stopped};
use crate::binary::{on, ran, run as semel_says, semel};
use crate::place::Place;

macro_rules! on_file_and_postgres {
    ($($name:ident)*) => {
        crate::on_every_store!(@ file [$($name)*]);
        crate::on_every_store!(@ postgres [$($name)*]);
    };
}

on_file_and_postgres! {
    every_event_runs_once_and_duplicates_are_passed_over
    dead_letters_are_put_aside_with_their_attempts_and_errors
    a_failure_that_may_pass_is_tried_again
    a_failure_that_needs_somebody_stops_and_nothing_is_lost
    events_without_a_key_are_treated_as_was_said
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

fn every_event_runs_once_and_duplicates_are_passed_over(place: &Place) {
    let feed = Feed::of_orders(150);
    feed.append((0..150).step_by(3));
    let account =
        consumed(place, &feed.source(), &feed.tracing("cat;"), "--key pointer:/id --parallel 4").fine();
    for part in ["delivered          200", "processed          150", "duplicates          50"] {
        assert!(account.contains(part), "{part}: {account}");
    }
    let traces = feed.traces();
    assert_eq!(traces.len(), 150);
    assert!(traces.values().all(|attempts| attempts == &[1]), "{traces:?}");

    let offset = on(place, "offsets orders --json").json();
    let events = feed.events();
    assert_eq!(offset["stream"], events.display().to_string());
    assert_eq!((&offset["position"], &offset["epoch"]), (&length(&events).into(), &1.into()), "{offset}");

    let receipts = json_lines(&on(place, "receipts orders --json --limit 1000").fine());
    assert_eq!(receipts.len(), 150);
    let first = receipts.iter().find(|receipt| receipt["event"] == "\"order-0\"").expect("is there");
    assert_eq!((&first["state"], &first["attempts"]), (&"processed".into(), &1.into()));
    assert_eq!(first["output"], "{\"id\":\"order-0\",\"cents\":4200}");

    // Read again from its start, nothing is processed again.
    on(place, &format!("offsets move orders {} --to start --yes", events.display())).fine();
    let again = consumed(place, &feed.source(), &feed.tracing(""), "--key pointer:/id").fine();
    assert!(again.contains("processed            0") && again.contains("duplicates         200"), "{again}");
    assert_eq!(feed.runs(), 150);

    // Negative control: under another name everything runs again, so the receipts are what prevents it.
    let mut other = semel();
    other.env("SEMEL_STORE", place.url()).args(["consume", "--pipeline", "others", "--key", "pointer:/id"]);
    other.args(["--source", &feed.source(), "--exec", &feed.tracing("")]);
    ran(&mut other).fine();
    assert_eq!(feed.runs(), 300);
    assert!(on(place, "stats").fine().contains("302 records"));
}

fn dead_letters_are_put_aside_with_their_attempts_and_errors(place: &Place) {
    let feed = Feed::of_orders(6);
    let letters = feed.path("dead.jsonl");
    let more = format!("--key pointer:/id --attempts-max 3 --dead-letters {}", letters.display());
    let exec = feed.tracing(
        "case $SEMEL_KEY in *order-2*) echo unreadable >&2; exit 65;; *order-4*) echo no luck >&2; exit 1;; esac;",
    );
    let account = consumed(place, &feed.source(), &exec, &more).fine();
    assert!(
        account.contains("dead letters         2") && account.contains("processed            4"),
        "{account}"
    );
    assert!(account.contains("retries              2"), "{account}");
    let mut written = json_lines(&std::fs::read_to_string(&letters).expect("is there"));
    written.sort_by_key(|letter| letter["key"].to_string());
    assert_eq!(written.len(), 2);
    for (letter, (key, attempts, error)) in written.iter().zip([
        ("\"order-2\"", 1, "the command ended with code 65: unreadable"),
        ("\"order-4\"", 3, "the command ended with code 1: no luck"),
    ]) {
        assert_eq!(letter["key"], key);
        assert_eq!((&letter["attempts"], &letter["error"]), (&attempts.into(), &error.into()), "{letter}");
        assert!(letter["payload"].as_str().is_some_and(|payload| payload.contains("4200")), "{letter}");
    }
    let mut dead = json_lines(&on(place, "receipts orders --dead --json").fine());
    dead.sort_by_key(|letter| letter["event"].to_string());
    assert_eq!(dead.len(), 2);
    assert_eq!((&dead[1]["state"], &dead[1]["attempts"]), (&"dead_letter".into(), &3.into()));
    let table = on(place, "receipts orders --dead").fine();
    assert!(table.contains("no luck") && table.contains("2 put aside"), "{table}");
    // They count as processed: nobody is handed them again.
    consumed(place, &feed.source(), &exec, &more).fine();
    assert_eq!(std::fs::read_to_string(&letters).expect("is there").lines().count(), 2);
}

fn a_failure_that_may_pass_is_tried_again(place: &Place) {
    let feed = Feed::of_orders(5);
    let exec = feed.tracing("[ $SEMEL_ATTEMPT -ge 2 ] || exit 75;");
    let said = consumed(place, &feed.source(), &exec, "--key pointer:/id");
    assert!(said.err.contains("attempt 1 of ") && said.err.contains("failed"), "{}", said.err);
    let account = said.fine();
    assert!(account.contains("retries              5"), "{account}");
    assert!(feed.traces().values().all(|attempts| attempts == &[2]), "{:?}", feed.traces());
    assert_eq!(feed.traces().len(), 5);
}

fn a_failure_that_needs_somebody_stops_and_nothing_is_lost(place: &Place) {
    for (stop, said) in [("exit 78", "code 78"), ("no-such-command", "check --exec")] {
        let (place, feed) = (&place.another(), Feed::of_orders(20));
        let exec = feed.tracing(&format!("case $SEMEL_KEY in *order-7*) {stop}; exit;; esac;"));
        let source = feed.source();
        let error = stopped(&consumed(place, &source, &exec, "--key pointer:/id --order stream"));
        assert!(error.contains(said), "{error}");
        let keys: Vec<_> = feed.traces().into_keys().collect();
        assert!(keys.len() <= 7, "what is behind it waits: {keys:?}");
        // Mended, it goes on where it was.
        consumed(place, &source, &feed.tracing(""), "--key pointer:/id --order stream").fine();
        let traces = feed.traces();
        assert_eq!((traces.len(), feed.runs()), (20, 20), "{traces:?}");
        assert_eq!(traces["\"order-7\""], [2], "the attempt that stopped was one");
    }
}

fn events_without_a_key_are_treated_as_was_said(place: &Place) {
    let feed = Feed::of_orders(2);
    feed.append_text("{\"cents\":1}\nno JSON\n");
    feed.append([2]);
    let exec = feed.tracing("");
    let error = stopped(&consumed(place, &feed.source(), &exec, "--key pointer:/id --order stream"));
    assert!(error.contains("key"), "{error}");
    assert!(feed.traces().len() <= 2, "what is behind it waits: {:?}", feed.traces());

    let letters = feed.path("dead.jsonl");
    let more = format!("--key pointer:/id --on-missing-key dead-letter --dead-letters {}", letters.display());
    consumed(place, &feed.source(), &exec, &more).fine();
    let written = json_lines(&std::fs::read_to_string(&letters).expect("is there"));
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written.iter().all(|letter| letter["key"].is_null() && letter["attempts"] == 0), "{written:?}");
    assert_eq!(feed.traces().len(), 3);

    on(place, &format!("offsets move orders {} --to start --yes", feed.events().display())).fine();
    consumed(place, &feed.source(), &exec, "--key pointer:/id --on-missing-key unprotected").fine();
    assert_eq!(feed.traces()[""].len(), 2, "they ran, without a key: {:?}", feed.traces());
    assert_eq!(feed.runs(), 5, "and the others did not");
}

#[test]
fn help_says_how_a_command_ends_and_what_it_finds() {
    let help = semel_says("consume --help").fine();
    for part in
        ["65 ", "75 ", "78, 126, 127", "SEMEL_FENCE", "SEMEL_HEADER_NAME", "--on-missing-key", "file:PATH"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn a_source_that_is_not_there_is_refused_before_anything_runs() {
    let place = Place::file();
    let error = consumed(&place, "file:/nowhere/events.jsonl", "true", "").failed();
    assert!(
        error.contains("/nowhere/events.jsonl") && error.contains("name a file that is there"),
        "{error}"
    );
    let error =
        ran(semel().args(["consume", "--pipeline", "p", "--exec", "x"]).env_remove("SEMEL_SOURCE")).refused();
    assert!(error.contains("SEMEL_SOURCE"), "{error}");
}

#[test]
fn a_command_finds_all_that_is_known_of_its_event() {
    let place = Place::file();
    let feed = Feed::of_orders(1);
    let found = feed.path("found");
    let exec = format!("env | grep ^SEMEL_ | sort > {}; cat >> {0}", found.display());
    consumed(&place, &feed.source(), &exec, "--key pointer:/id --scope acme/eu").fine();
    let text = std::fs::read_to_string(&found).expect("is there");
    let position = length(&feed.events());
    for part in [
        "SEMEL_ATTEMPT=1",
        "SEMEL_KEY=\"order-0\"",
        "SEMEL_PIPELINE=orders",
        &format!("SEMEL_POSITION={position}"),
        &format!("SEMEL_STREAM={}", feed.events().display()),
        "SEMEL_EVENT_ID=",
        "{\"id\":\"order-0\",\"cents\":4200}",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let derived = text.lines().find_map(|line| line.strip_prefix("SEMEL_DERIVED_KEY=")).expect("is there");
    assert_eq!(derived.len(), 64);
    let fence = text.lines().find_map(|line| line.strip_prefix("SEMEL_FENCE=")).expect("is there");
    assert!(fence.parse::<u64>().is_ok_and(|fence| fence > 0), "{fence}");
    let offset = on(&place, "offsets --json").json();
    assert_eq!(offset["scope"], serde_json::json!(["acme", "eu"]));
}

#[test]
fn a_command_for_dead_letters_is_run_until_it_takes_them() {
    let place = Place::file();
    let feed = Feed::of_orders(1);
    let taken = feed.path("taken");
    let take = format!(
        "[ -e {0}.once ] || {{ touch {0}.once; exit 1; }}; echo \"$SEMEL_KEY $SEMEL_ATTEMPTS $SEMEL_ERROR\" >> {0}",
        taken.display()
    );
    let mut command = consume(&place, &feed.source(), "exit 65", "--key pointer:/id");
    ran(command.args(["--dead-letter-exec", &take])).fine();
    let text = std::fs::read_to_string(&taken).expect("is there");
    assert_eq!(
        text, "\"order-0\" 1 the command ended with code 65\n",
        "the handler ran once, the place twice"
    );
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_tried_again() {
    let place = Place::file();
    let feed = Feed::of_orders(1);
    let exec = feed.tracing("[ $SEMEL_ATTEMPT -ge 2 ] || sleep 30;");
    let said = consumed(&place, &feed.source(), &exec, "--key pointer:/id --timeout 300ms");
    assert!(said.err.contains("killed after 300ms"), "{}", said.err);
    said.fine();
    assert_eq!(feed.traces()["\"order-0\""], [2]);
}
