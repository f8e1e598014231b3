//! `semel receipts`.

use semel::{Decision, Outcome, Permit, Semel};
use semel_stream::{Pipeline, dead_letter};
use serde_json::Value;

use crate::binary::on;
use crate::place::Place;

crate::on_every_store! {
    the_newest_come_first_and_all_are_counted
    one_event_is_shown_with_what_was_printed
    an_event_that_is_recorded_by_hand_is_never_processed
    a_held_event_is_released_or_recorded_and_nothing_else_is
}

async fn run(pipeline: &Pipeline, event: &str) -> Permit {
    let decision = pipeline.claim(event).await.expect("is answered");
    let Decision::Run(permit) = decision else { panic!("was not told to run but {}", decision.as_str()) };
    permit
}

fn pipeline(semel: &Semel) -> Pipeline {
    Pipeline::new(semel, "orders").expect("is fine")
}

/// Processed, put aside, running, released and held.
fn fill(place: &Place) {
    place.with(async |semel| {
        let pipeline = pipeline(&semel);
        for event in ["one", "two", "three"] {
            let permit = run(&pipeline, event).await;
            permit
                .complete(Outcome::success(format!("paid {event}\n").into_bytes()))
                .await
                .expect("is completed");
        }
        run(&pipeline, "bad").await.complete(dead_letter(3, "too large")).await.expect("is completed");
        run(&pipeline, "released").await.release("try later").await.expect("is released");
        run(&pipeline, "held").await.hold("who knows").await.expect("is held");
        run(&pipeline, "running").await;
    });
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().expect("is text")).collect()
}

fn the_newest_come_first_and_all_are_counted(place: &Place) {
    fill(place);
    let all = on(place, "receipts orders --json").json_lines();
    assert_eq!(events(&all), ["running", "held", "released", "bad", "three", "two", "one"]);
    assert_eq!(events(&on(place, "receipts orders --json --limit 2").json_lines()), ["running", "held"]);
    assert_eq!(events(&on(place, "receipts orders --json --dead").json_lines()), ["bad"]);
    assert_eq!(events(&on(place, "receipts orders --json --held").json_lines()), ["held"]);
    let one = on(place, "receipts orders --json --event two").json();
    assert_eq!((&one["state"], &one["output"]), (&"processed".into(), &"paid two\n".into()));
    let table = on(place, "receipts orders --limit 3").fine();
    for part in ["7 events: 3 processed, 1 put aside, 1 running", "who knows", "the newest 3 are shown"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(on(place, "receipts nobody").fine().contains("nobody has no events"));
    // The commands for records of any kind know them too.
    assert!(on(place, "stats").fine().contains("7 records"));
    assert_eq!(on(place, "keys list --operation receipt --state held --json").json()["name"], "held");
}

fn one_event_is_shown_with_what_was_printed(place: &Place) {
    fill(place);
    let shown = on(place, "receipts show orders two --outcome").fine();
    assert!(shown.contains("orders receipt two") && shown.contains("paid two"), "{shown}");
    assert_eq!(on(place, "receipts show orders held --json").json()["reason"], "who knows");
    let error = on(place, "receipts show orders four").failed();
    assert!(error.contains("has no record of four") && error.contains("semel receipts orders"), "{error}");
}

fn an_event_that_is_recorded_by_hand_is_never_processed(place: &Place) {
    fill(place);
    let error = on(place, "receipts record orders new").failed();
    assert!(error.contains("nothing was changed") && error.contains("That cannot be undone"), "{error}");
    assert!(on(place, "receipts orders --event new --json").fine().is_empty());
    assert!(on(place, "receipts record orders new --yes").fine().contains("counts as processed"));
    assert!(on(place, "receipts record orders released --yes").fine().contains("counts as processed"));
    let again = on(place, "receipts record orders new --yes").fine();
    assert!(again.contains("has a receipt already"), "{again}");
    let error = on(place, "receipts record orders running --yes").failed();
    assert!(error.contains("worker-7 is processing it"), "{error}");
    place.with(async |semel| {
        for event in ["new", "released"] {
            let decision = pipeline(&semel).claim(event).await.expect("is answered");
            let Decision::Replay(replay) = decision else { panic!("{event} was not passed over") };
            assert_eq!(replay.outcome().kind().as_str(), "recorded");
        }
    });
}

fn a_held_event_is_released_or_recorded_and_nothing_else_is(place: &Place) {
    fill(place);
    let error = on(place, "receipts release orders held").failed();
    assert!(error.contains("nothing was changed") && error.contains("happens twice"), "{error}");
    let said = on(place, "receipts release orders held --yes --reason looked").fine();
    assert!(said.contains("runs as attempt 2"), "{said}");
    place.with(async |semel| {
        let permit = run(&pipeline(&semel), "held").await;
        assert_eq!(permit.attempt(), 2);
        permit.hold("again").await.expect("is held");
    });
    assert!(on(place, "receipts record orders held --yes").fine().contains("counts as processed"));
    for event in ["two", "bad"] {
        let error = on(place, &format!("receipts release orders {event} --yes")).failed();
        assert!(error.contains("It is done, and nothing was changed"), "{error}");
    }
}
