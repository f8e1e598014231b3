//! `semel keys release` and `semel keys resolve`.

use std::time::Duration;

use semel::{Claim, Decision, ErrorKind, Key, Lapse, Outcome, OutcomeKind};
use semel_http::StoredResponse;

use crate::binary::{on, run as semel_says};
use crate::place::{Place, id};
use crate::records::{fill, hold, key, run};

crate::on_every_store! {
    nothing_is_settled_without_consent
    a_running_key_that_is_released_runs_again
    a_run_that_lapsed_under_hold_is_resolved_without_a_claim_in_between
    a_done_key_is_never_touched
    a_held_key_is_resolved_with_an_outcome_that_is_replayed
    h58_a_held_http_key_is_resolved_with_a_response_and_with_nothing_else
    a_held_key_is_released_and_runs_again
    what_is_not_held_cannot_be_resolved
}

fn version(place: &Place, name: &str) -> serde_json::Value {
    on(place, &format!("keys show {} --json", id(&key(name)))).json()["version"].clone()
}

fn nothing_is_settled_without_consent(place: &Place) {
    fill(place);
    let (running, held) = (id(&key("order-3")), id(&key("p-2")));
    let before = [version(place, "order-3"), version(place, "p-2")];
    for line in [
        format!("keys release {running}"),
        format!("keys release {held}"),
        format!("keys resolve {held} --release"),
        format!("keys resolve {held} --outcome-file Cargo.toml"),
    ] {
        let error = on(place, &line).failed();
        assert!(error.contains("nothing was changed") && error.contains("--yes"), "{line}: {error}");
    }
    let error = on(place, &format!("keys release {running}")).failed();
    assert!(
        error.contains("Releasing does not stop the worker") && error.contains("refused as lost"),
        "{error}"
    );
    assert_eq!(before, [version(place, "order-3"), version(place, "p-2")]);
}

fn a_running_key_that_is_released_runs_again(place: &Place) {
    let key = Key::scoped(["acme"], "charge", "stuck").expect("is fine");
    let release = || {
        let said = on(place, &format!("keys release {} --yes --reason gone", id(&key))).fine();
        assert!(said.contains("the next claim runs as attempt 2"), "{said}");
        let shown = on(place, &format!("keys show {} --json", id(&key))).json();
        assert_eq!((&shown["state"], &shown["reason"]), (&"released".into(), &"gone".into()));
    };
    let claim = || Claim::new(&key).lease(Duration::from_hours(1));
    if place.is_shared() {
        place.with(async |semel| {
            let permit = run(&semel, claim()).await;
            release();
            let late = permit.complete(Outcome::success("late")).await.expect_err("another may run");
            assert_eq!(late.kind(), ErrorKind::Lost);
        });
    } else {
        place.with(async |semel| drop(run(&semel, claim()).await));
        release();
    }
    place.with(async |semel| assert_eq!(run(&semel, claim()).await.attempt(), 2));
    let again = on(place, &format!("keys release {} --yes", id(&key))).fine();
    assert!(again.contains("as attempt 3"), "{again}");
    let idle = on(place, &format!("keys release {} --yes", id(&key))).fine();
    assert!(idle.contains("released already"), "{idle}");
}

fn a_done_key_is_never_touched(place: &Place) {
    fill(place);
    let before = version(place, "order-1");
    let done = id(&key("order-1"));
    let error = on(place, &format!("keys release {done} --yes")).failed();
    assert!(error.contains("It is done, and nothing was changed"), "{error}");
    let error = on(place, &format!("keys resolve {done} --release --yes")).failed();
    assert!(error.contains("an outcome already, which never changes"), "{error}");
    assert_eq!(before, version(place, "order-1"));
}

fn a_held_key_is_resolved_with_an_outcome_that_is_replayed(place: &Place) {
    let key = Key::scoped(["globex"], "payout", "2026-11").expect("is fine");
    place.with(async |semel| hold(&semel, &key).await);
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("outcome.json");
    std::fs::write(&file, b"{\"paid\":true}").expect("is written");
    let line = format!("keys resolve {} --outcome-file {} --kind skipped --yes", id(&key), file.display());
    assert!(on(place, &line).fine().contains("every retry gets this outcome"));
    place.with(async |semel| {
        let Decision::Replay(replay) = semel.claim(Claim::new(&key)).await.expect("is answered") else {
            panic!("a key that is done was not replayed");
        };
        assert_eq!(&**replay.outcome().bytes(), b"{\"paid\":true}");
        assert_eq!(*replay.outcome().kind(), OutcomeKind::Other("skipped".into()));
    });
}

fn h58_a_held_http_key_is_resolved_with_a_response_and_with_nothing_else(place: &Place) {
    let key = Key::scoped(["auth:1"], "http", "pay-1").expect("is fine");
    let claim = Claim::new(&key).label("POST /charges").lapse(Lapse::Hold).lease(Duration::from_millis(1));
    place.with(async |semel| drop(run(&semel, claim).await));
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("charge.json");
    std::fs::write(&file, b"{\"id\": 7}").expect("is written");
    let resolve = format!("keys resolve {} --yes", id(&key));
    let body = file.display();
    for (line, named) in [
        (format!("{resolve} --outcome-file {body}"), "--status"),
        (format!("{resolve} --status 201 --header set-cookie:a=b --body-file {body}"), "set-cookie"),
        (format!("{resolve} --status 204 --body-file {body}"), "204"),
        (format!("{resolve} --status 102"), "102"),
    ] {
        let error = on(place, &line).failed();
        assert!(error.contains(named), "{line}: {error}");
        assert_eq!(on(place, &format!("keys show {} --json", id(&key))).json()["state"], "held", "{line}");
    }
    let line = format!("{resolve} --status 201 --header location:/charges/7 --body-file {body}");
    assert!(on(place, &line).fine().contains("every retry gets 201"));
    let shown = on(place, &format!("keys show {} --json", id(&key))).json();
    assert_eq!((&shown["status"], &shown["content_type"]), (&201.into(), &"application/json".into()));
    place.with(async |semel| {
        let record = semel.get(&key).await.expect("is answered").expect("is there");
        let stored = StoredResponse::of(record.outcome().expect("is done")).expect("is readable");
        let StoredResponse::Whole(reply) = stored else { panic!("the response was not kept") };
        assert_eq!((reply.status().as_u16(), &**reply.body()), (201, &b"{\"id\": 7}"[..]));
        assert_eq!(reply.headers()["location"], "/charges/7");
    });
}

fn a_held_key_is_released_and_runs_again(place: &Place) {
    let key = Key::scoped(["globex"], "payout", "2026-12").expect("is fine");
    for (attempt, command) in [(2, "release"), (3, "resolve --release")] {
        place.with(async |semel| hold(&semel, &key).await);
        let (word, more) = command.split_once(' ').unwrap_or((command, ""));
        let line = format!("keys {word} {} {more} --yes --reason checked", id(&key));
        assert!(on(place, &line).fine().contains(&format!("as attempt {attempt}")));
    }
    place.with(async |semel| assert_eq!(run(&semel, Claim::new(&key)).await.attempt(), 3));
}

fn what_is_not_held_cannot_be_resolved(place: &Place) {
    fill(place);
    for (name, said) in [("order-3", "semel keys release"), ("p-3", "the next claim runs it")] {
        let error = on(place, &format!("keys resolve {} --release --yes", id(&key(name)))).failed();
        assert!(
            error.contains("is not held, and nothing was changed") && error.contains(said),
            "{name}: {error}"
        );
    }
    let error = on(place, &format!("keys resolve {} --outcome-file nowhere --yes", id(&key("p-2")))).failed();
    assert!(error.contains("cannot read the outcome from nowhere"), "{error}");
}

fn a_run_that_lapsed_under_hold_is_resolved_without_a_claim_in_between(place: &Place) {
    fill(place);
    let lapsed = id(&key("p-1"));
    let said = on(place, &format!("keys resolve {lapsed} --release --yes --reason checked")).fine();
    assert!(said.contains("the next claim runs as attempt 2"), "{said}");
    let shown = on(place, &format!("keys show {lapsed} --json")).json();
    assert_eq!((&shown["state"], &shown["reason"]), (&"released".into(), &"checked".into()));
}

#[test]
fn a_resolution_says_how() {
    for line in [
        "keys resolve 3f2a9c0d",
        "keys resolve 3f2a9c0d --release --outcome-file a",
        "keys resolve --release",
    ] {
        semel_says(line).refused();
    }
}
