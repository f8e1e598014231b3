//! `semel keys list`.

use std::collections::BTreeSet;

use semel::Claim;

use crate::binary::{on, semel};
use crate::place::{Place, hex, id};
use crate::records::{NAMES, fill, key, run};

crate::on_every_store! {
    every_record_is_listed_once_page_by_page
    a_filter_shows_what_it_names_and_nothing_else
    json_lines_hold_what_a_script_wants_and_never_a_permit_id
    an_empty_answer_says_so
}

fn every_record_is_listed_once_page_by_page(place: &Place) {
    fill(place);
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = on(place, &format!("keys list --limit 2 {after}")).fine();
        let lines: Vec<_> = page.lines().collect();
        let (footer, rows) = lines.split_last().expect("has a footer");
        seen.extend(rows.iter().skip(1).map(|row| row[..8].to_owned()));
        assert!(rows.len() <= 3, "{page}");
        match footer.split_once("--after ") {
            Some((_, rest)) => after = format!("--after {}", rest.split(',').next().expect("is there")),
            None => break assert!(footer.ends_with("and no more."), "{footer}"),
        }
    }
    let expected: BTreeSet<_> = NAMES.iter().map(|name| id(&key(name))[..8].to_owned()).collect();
    assert_eq!(seen.len(), NAMES.len(), "{seen:?}");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
}

fn a_filter_shows_what_it_names_and_nothing_else(place: &Place) {
    fill(place);
    let names = |filter: &str| {
        let lines = on(place, &format!("keys list --json {filter}")).json_lines();
        let mut names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(""), NAMES.join(" "));
    assert_eq!(names("--all"), NAMES.join(" "));
    assert_eq!(names("--scope acme"), "order-1 order-2 order-3");
    assert_eq!(names("--scope acme/eu"), "order-1 order-2");
    assert_eq!(names("--operation payout --state held"), "p-1 p-2", "one lapsed under hold, one was held");
    assert_eq!(names("--state running"), "order-3");
    assert_eq!(names("--state running,held"), "order-3 p-1 p-2");
    assert_eq!(names("--name p-3"), "p-3");
    assert_eq!((names("--older-than 1h"), names("--older-than 0s")), (String::new(), NAMES.join(" ")));
}

fn json_lines_hold_what_a_script_wants_and_never_a_permit_id(place: &Place) {
    let permit = hex(fill(place));
    let lines = on(place, "keys list --json").json_lines();
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).expect("is listed");
    let running = line("order-3");
    assert_eq!((&running["state"], &running["owner"]), (&"running".into(), &"worker-7".into()));
    assert_eq!((&running["lapsed"], &running["first_event"]), (&false.into(), &"evt-88".into()));
    assert_eq!(running["steps"][0]["name"], "reserve");
    for (name, owner) in [("p-1", "worker-7"), ("p-2", "worker-7")] {
        let held = line(name);
        assert_eq!((&held["state"], &held["reason"]), (&"held".into(), &"lapsed".into()), "{name}");
        assert_eq!(
            (&held["owner"], &held["history"][0]["ended"]),
            (&owner.into(), &"lapsed".into()),
            "{name}"
        );
    }
    let done = line("order-1");
    assert_eq!(
        (&done["outcome"]["references"][0]["id"], &done["outcome"]["details"]["fee"]),
        (&"ch_1".into(), &12.into())
    );
    assert_eq!((&done["mismatches"], &done["outcome"]["base64"]), (&1.into(), &serde_json::Value::Null));
    let whole = on(place, "keys list --json --outcome").fine();
    assert!(whole.contains("eyJpZCI6ImNoXzEifQ=="), "{whole}");
    let table = on(place, "keys list").fine();
    assert!(
        !whole.contains(&permit) && !table.contains(&permit),
        "whoever knows a permit id may settle its record"
    );
    // The control: the id is there to be found.
    assert!(on(place, "export").fine().contains(&permit));
}

fn an_empty_answer_says_so(place: &Place) {
    assert_eq!(on(place, "keys list").fine(), "0 records, and no more.\n");
    assert_eq!(on(place, "keys list --json").fine(), "");
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let place = Place::file();
    place.with(async |semel| {
        for number in 0..200 {
            let key = semel::Key::new("charge", &format!("order-{number}")).expect("is fine");
            run(&semel, Claim::new(&key)).await;
        }
    });
    let mut command = semel();
    command.env("SEMEL_STORE", place.url()).args(["keys", "list", "--all", "--json"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
