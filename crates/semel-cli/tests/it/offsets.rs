//! `semel offsets`.

use semel_stream::{Commit, Pipeline, Position};

use crate::binary::{on, run as semel_says};
use crate::place::Place;

crate::on_every_store! {
    every_stream_of_every_pipeline_is_listed
    nothing_is_moved_without_consent
    a_moved_offset_fences_whoever_reads
}

/// Two pipelines and a tenant's, which is called like one of them.
fn fill(place: &Place) {
    place.with(async |semel| {
        let orders = Pipeline::new(&semel, "orders").expect("is fine");
        for (stream, position) in [("topic/0", 41), ("topic/1", u128::MAX)] {
            let reader = orders.take(stream).await.expect("is taken");
            reader.commit(Position::new(position), Some("e-41")).await.expect("is committed");
        }
        let queue = Pipeline::new(&semel, "mails").expect("is fine");
        queue.commit_shared("queue", Position::new(7), None).await.expect("is committed");
        let tenant = Pipeline::builder(&semel, "eu").scope(["orders"]).build().expect("is fine");
        tenant.take("topic/0").await.expect("is taken");
    });
}

fn every_stream_of_every_pipeline_is_listed(place: &Place) {
    assert!(on(place, "offsets").fine().contains("nobody has begun to read"));
    fill(place);
    let all = on(place, "offsets --json").json_lines();
    let places: Vec<_> = all
        .iter()
        .map(|offset| {
            let text = |name: &str| offset[name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", text("pipeline"), text("stream"), text("position"))
        })
        .collect();
    let largest = format!("orders topic/1 {}", u128::MAX);
    assert_eq!(places, ["mails queue 7", "orders topic/0 41", &largest, "eu topic/0 -"]);
    assert_eq!((&all[1]["last_event"], &all[1]["epoch"]), (&"e-41".into(), &1.into()));
    assert_eq!(on(place, "offsets orders --json").json_lines().len(), 2, "a tenant is no pipeline");
    assert_eq!(on(place, "offsets eu --scope orders --json").json_lines().len(), 1);
    assert_eq!(on(place, "offsets --scope orders --json").json_lines().len(), 3);
    let table = on(place, "offsets").fine();
    for part in ["orders/eu", "start", "e-41", "ago", "4 streams."] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

fn nothing_is_moved_without_consent(place: &Place) {
    fill(place);
    let before = on(place, "offsets --json").fine();
    let error = on(place, "offsets move orders topic/0 --to start").failed();
    for part in ["nothing was changed", "--yes", "fenced", "not processed again", "position 41 to its start"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = on(place, "offsets move orders topc/0 --to 7").failed();
    assert!(error.contains("Nobody has begun") && error.contains("topic/0, topic/1"), "{error}");
    let error = on(place, "offsets move mails queue --to start --yes").failed();
    assert!(error.contains("shared by many readers"), "{error}");
    assert_eq!(on(place, "offsets --json").fine(), before);
}

fn a_moved_offset_fences_whoever_reads(place: &Place) {
    let take = async |semel: semel::Semel| {
        let pipeline = Pipeline::new(&semel, "orders").expect("is fine");
        let reader = pipeline.take("topic/0").await.expect("is taken");
        reader.commit(Position::new(9), None).await.expect("is committed");
        reader
    };
    let moved = || {
        let said = on(place, "offsets move orders topic/0 --to 3 --yes").fine();
        assert!(said.contains("Moved topic/0 of orders to position 3"), "{said}");
    };
    if place.is_shared() {
        place.with(async |semel| {
            let reader = take(semel).await;
            moved();
            let late = reader.commit(Position::new(10), None).await.expect("is answered");
            assert!(matches!(late, Commit::Fenced(_)), "{late:?}");
        });
    } else {
        place.with(async |semel| drop(take(semel).await));
        moved();
    }
    let offset = on(place, "offsets orders --json").json();
    assert_eq!((&offset["position"], &offset["epoch"]), (&"3".into(), &2.into()));
}

#[test]
fn a_place_that_is_none_is_refused_with_what_is_one() {
    let error = semel_says("offsets move orders topic/0 --to end").refused();
    assert!(error.contains("is no position") && error.contains("start"), "{error}");
}
