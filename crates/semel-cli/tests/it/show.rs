//! `semel keys show`.

use std::collections::HashMap;

use semel::{Claim, Key};

use crate::binary::{on, run as semel_says};
use crate::place::{Place, hex, id};
use crate::records::{fill, key, run};

crate::on_every_store! {
    a_record_is_shown_by_its_key_and_by_the_beginning_of_its_id
    the_bytes_of_an_outcome_are_shown_only_if_asked_for
    what_may_be_done_is_said_for_every_state
    the_label_and_every_attempt_that_is_over_are_shown
    an_id_that_two_records_begin_with_is_refused_with_both
    a_record_that_is_not_there_is_told_what_to_do
}

fn a_record_is_shown_by_its_key_and_by_the_beginning_of_its_id(place: &Place) {
    let permit = hex(fill(place));
    let running = id(&key("order-3"));
    let by_key = on(place, "keys show --scope acme/us --operation charge --name order-3 --json").json();
    let by_id = on(place, &format!("keys show {} --json", &running[..8])).json();
    let by_whole_id = on(place, &format!("keys show {running} --json")).json();
    assert_eq!((&by_key["id"], &by_id["id"]), (&running.as_str().into(), &running.as_str().into()));
    assert_eq!((&by_whole_id["name"], &by_key["version"]), (&"order-3".into(), &by_id["version"]));
    let shown = on(place, &format!("keys show {}", &running[..8])).fine();
    for part in [
        "acme/us charge order-3",
        "running for",
        "lease good for 59m",
        "worker-7",
        "evt-88",
        "reserve (2 B)",
        &running,
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(&permit) && !by_key.to_string().contains(&permit));
}

fn the_bytes_of_an_outcome_are_shown_only_if_asked_for(place: &Place) {
    fill(place);
    let show =
        |name: &str, more: &str| on(place, &format!("keys show {} {more}", &id(&key(name))[..12])).fine();
    assert!(!show("order-1", "").contains("{\"id\":\"ch_1\"}"));
    assert!(show("order-1", "--outcome").ends_with("\n{\"id\":\"ch_1\"}\n"));
    assert!(show("order-2", "--outcome").contains("00000000  00 01 02 ff"));
    assert!(show("order-3", "--outcome").contains("There is no outcome"));
    assert!(!show("order-1", "--json").contains("base64"));
    assert!(show("order-1", "--json --outcome").contains("eyJpZCI6ImNoXzEifQ=="));
}

fn the_label_and_every_attempt_that_is_over_are_shown(place: &Place) {
    fill(place);
    let shown = on(place, &format!("keys show {}", &id(&key("order-1"))[..12])).fine();
    for part in ["POST /charges", "charge ch_1", "account acct_9", "attempt", "took", "completed"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = on(place, &format!("keys show {}", &id(&key("p-3"))[..12])).fine();
    let ended = shown.lines().find(|line| line.trim_start().starts_with("1 ")).expect("attempt 1 is listed");
    for part in ["worker-7", "released", "try later"] {
        assert!(ended.contains(part), "{part}: {shown}");
    }
    let running = on(place, &format!("keys show {}", &id(&key("order-3"))[..12])).fine();
    assert!(!running.contains("took"), "no attempt is over: {running}");
}

fn what_may_be_done_is_said_for_every_state(place: &Place) {
    fill(place);
    for (name, said) in [
        ("order-1", "Every retry gets the stored outcome"),
        ("order-3", "semel keys release"),
        ("p-1", "Find out whether the"),
        ("p-2", "semel keys resolve"),
        ("p-3", "The next claim runs it as attempt 2"),
    ] {
        let shown = on(place, &format!("keys show {}", &id(&key(name))[..12])).fine();
        assert!(shown.contains(said), "{name}: {shown}");
    }
}

fn an_id_that_two_records_begin_with_is_refused_with_both(place: &Place) {
    let mut known: HashMap<String, Key> = HashMap::new();
    let (prefix, one, other) = (0..100_000)
        .find_map(|number| {
            let key = Key::new("charge", &format!("order-{number}")).expect("is fine");
            let prefix = id(&key)[..4].to_owned();
            known.insert(prefix.clone(), key.clone()).map(|other| (prefix, key, other))
        })
        .expect("among so many, two begin alike");
    place.with(async |semel| {
        run(&semel, Claim::new(&one)).await;
        run(&semel, Claim::new(&other)).await;
    });
    let error = on(place, &format!("keys show {prefix}")).failed();
    assert!(
        error.contains("give more digits") && error.contains(&id(&one)) && error.contains(&id(&other)),
        "{error}"
    );
    assert_eq!(on(place, &format!("keys show {} --json", id(&one))).json()["name"], one.name());
}

fn a_record_that_is_not_there_is_told_what_to_do(place: &Place) {
    fill(place);
    let error = on(place, "keys show --operation charge --name nobody").failed();
    assert!(
        error.contains("it was never claimed") && error.contains("semel keys list --operation charge"),
        "{error}"
    );
    let error = on(place, "keys show 00000000000000").failed();
    assert!(error.contains("no record whose id begins with"), "{error}");
}

#[test]
fn a_key_that_is_half_named_is_refused() {
    for line in
        ["keys show", "keys show xyz", "keys show --operation charge", "keys show --scope acme --name a"]
    {
        let error = semel_says(line).refused();
        assert!(error.starts_with("error: "), "{line}: {error}");
    }
}
