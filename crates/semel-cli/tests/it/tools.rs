//! `semel stats`, `watch`, `sweep`, `check` and `migrate`.

use std::time::Duration;

use semel::{Claim, Key, Outcome};
use serde_json::Value;
use test_services::{AppendFsync, Postgres, Redis};

use crate::binary::{on, run as semel_says};
use crate::place::Place;
use crate::records::{NAMES, fill, run};

crate::on_every_store! {
    stats_count_every_record_once
    a_sweep_removes_what_is_past_its_time_and_nothing_else
    watching_prints_a_line_a_look
    a_check_ends_as_it_judges
}

fn stats_count_every_record_once(place: &Place) {
    fill(place);
    let stats = on(place, "stats --json").json();
    for (name, count) in [
        ("records", NAMES.len()),
        ("running", 1),
        ("lapsed_leases", 0),
        ("held", 2),
        ("done", 2),
        ("released", 1),
        ("outcome_bytes", 17),
        ("mismatches", 1),
    ] {
        assert_eq!(stats[name], count, "{name}: {stats}");
    }
    assert_eq!(
        (&stats["oldest_held"]["name"], &stats["oldest_running"]["name"]),
        (&"p-1".into(), &"order-3".into())
    );
    let table = on(place, "stats").fine();
    for part in ["6 records", "the oldest for", "17 B of outcomes", "1 mismatch refused"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

fn a_sweep_removes_what_is_past_its_time_and_nothing_else(place: &Place) {
    fill(place);
    place.with(async |semel| {
        for number in 0..5 {
            let key = Key::new("charge", &format!("brief-{number}")).expect("is fine");
            let permit = run(&semel, Claim::new(&key).retention(Duration::from_millis(1))).await;
            permit.complete(Outcome::success("x")).await.expect("is completed");
        }
    });
    let first = on(place, "sweep --limit 2 --json").json();
    assert!(first["removed"].as_u64().is_some_and(|removed| removed <= 2), "{first}");
    let rest = on(place, "sweep --json").json();
    // A store may forget by itself what is past its time, and a folder that is opened again finds some of it once more.
    assert!(rest["removed"].as_u64().is_some_and(|removed| removed <= 5), "{rest}");
    assert!(place.is_shared() || rest["removed"].as_u64() >= Some(3), "{rest}");
    assert_eq!(rest["more_left"], false);
    let stats = on(place, "stats --json").json();
    assert_eq!((&stats["records"], &stats["past_retention"]), (&NAMES.len().into(), &0.into()));
    assert!(on(place, "sweep").fine().contains("past their retention; nothing else is due."));
}

fn watching_prints_a_line_a_look(place: &Place) {
    fill(place);
    let lines = on(place, "watch --looks 2 --every 10ms").fine();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(
        lines.lines().all(|line| line.ends_with("running 1  lapsed 0  held 2  done 2  released 1")),
        "{lines}"
    );
    let looks = on(place, "watch --for 1ms --every 20ms --json").json_lines();
    assert_eq!((looks.len(), &looks[0]["records"]), (1, &NAMES.len().into()));
}

fn a_check_ends_as_it_judges(place: &Place) {
    let said = on(place, "check --json");
    let json: Value = serde_json::from_str(&said.out).expect("is JSON");
    let findings = json["findings"].as_array().expect("is a list");
    assert!(!findings.is_empty());
    let broken = findings.iter().any(|finding| finding["verdict"] == "broken");
    // A folder for tests may lie on a file system that forgets; the servers are set to keep everything.
    assert_eq!((json["kept"].clone(), said.code), ((!broken).into(), Some(i32::from(broken))), "{json}");
    assert!(!broken || !place.is_shared(), "{json}");
    let table = on(place, "check").out;
    assert!(table.contains("What it acknowledges is to survive") && table.contains("promise"), "{table}");
}

#[test]
fn a_server_that_does_not_sync_breaks_the_promise_and_is_named() {
    let server = Postgres::start_with(&[("fsync", "off")]).expect("PostgreSQL starts");
    let url = server.url();
    semel_says(&format!("--store {url} migrate")).fine();
    let error = semel_says(&format!("--store {url} stats")).failed();
    assert!(error.contains("fsync is off"), "{error}");
    let said = semel_says(&format!("--store {url} check"));
    assert!(
        said.out.lines().any(|line| line.starts_with("broken") && line.contains("fsync")),
        "{}",
        said.out
    );
    assert!(said.failed().contains("break the promise"));
}

#[test]
fn a_redis_that_may_lose_a_second_breaks_the_promise_and_is_named() {
    let server = Redis::start(AppendFsync::EverySecond).expect("Redis starts");
    let said = semel_says(&format!("--store {} check", server.url()));
    assert!(
        said.out.lines().any(|line| line.starts_with("broken") && line.contains("durability")),
        "{}",
        said.out
    );
    assert!(said.failed().contains("break the promise"));
}

#[test]
fn a_schema_is_made_once_and_asked_for_until_then() {
    let (url, _server) = Place::empty_schema();
    let error = semel_says(&format!("--store {url} stats")).failed();
    assert!(error.contains("semel migrate"), "{error}");
    let first = semel_says(&format!("--store {url} migrate")).fine();
    assert!(first.contains("has its schema now, version 3"), "{first}");
    let second = semel_says(&format!("--store {url} migrate")).fine();
    assert!(second.contains("is up to date"), "{second}");
    semel_says(&format!("--store {url} stats")).fine();
}

#[test]
fn a_store_without_a_schema_has_nothing_to_migrate() {
    let said = on(&Place::file(), "migrate").fine();
    assert!(said.contains("needs no schema: there is nothing to do"), "{said}");
}
