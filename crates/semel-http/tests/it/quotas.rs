//! H62 on the layer: what counts against the quotas of a caller, and what does not.

use std::time::Duration;

use http::HeaderValue;
use semel_http::{Principal, Quotas, Settings, Settle};
use tokio::time::sleep;

use crate::world::{App, Told, World, answer, charge, ruled, send};

fn bounded(quotas: Quotas) -> Settings {
    Settings { quotas: Some(quotas), ..Settings::default() }
}

fn records(most: u64) -> Quotas {
    Quotas { records: Some(most), ..Quotas::default() }
}

/// Answers each key with the status that it begins with.
fn answering(world: &World, settings: Settings) -> App {
    world.app(&world.layer(settings), |request| async move {
        let key = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
        let mut response = answer(key[..3].parse().unwrap(), "twelve bytes");
        if key.ends_with("released") {
            response.extensions_mut().insert(Settle::Release);
        }
        response
    })
}

fn is_refused(told: &Told) -> bool {
    let is_refused = told.status == 429;
    assert_eq!(is_refused, told.headers.contains_key("retry-after"), "{}", told.text());
    is_refused
}

async fn refuses(app: &App, key: &str) -> bool {
    is_refused(&send(app, charge(key, "{}")).await)
}

#[tokio::test]
async fn a_key_that_was_given_back_left_nothing_and_is_new_to_a_caller_over_its_quota() {
    let world = World::new();
    let app = answering(&world, bounded(records(1)));
    assert!(!refuses(&app, "401-given-back").await);
    assert!(!refuses(&app, "201-kept").await);
    assert!(refuses(&app, "401-given-back").await, "it would run again");
    assert!(send(&app, charge("201-kept", "{}")).await.is_replay());
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn what_is_remembered_counts_as_a_record_and_what_is_given_back_does_not() {
    for (key, counts) in
        [("201-kept", true), ("500-failed", true), ("401-given-back", false), ("503-released", false)]
    {
        let world = World::new();
        let app = answering(&world, bounded(records(1)));
        send(&app, charge(key, "{}")).await;
        assert_eq!(refuses(&app, "201-another").await, counts, "{key}");
    }
}

#[tokio::test]
async fn a_failed_run_counts_once_however_often_it_runs_again() {
    let world = World::new();
    let app = answering(&world, bounded(records(2)));
    for _ in 0..3 {
        assert_eq!(send(&app, charge("500-failed", "{}")).await.status, 500);
    }
    assert!(!refuses(&app, "201-kept").await);
    assert!(refuses(&app, "201-another").await);
    assert_eq!(send(&app, charge("500-failed", "{}")).await.status, 500, "what is there may be asked for");
}

#[tokio::test(start_paused = true)]
async fn every_new_key_counts_for_a_minute_also_one_that_was_given_back() {
    let world = World::new();
    let app = answering(&world, bounded(Quotas { new_keys_per_minute: Some(2), ..Quotas::default() }));
    for key in ["401-given-back", "401-given-back", "201-kept", "201-kept"] {
        assert!(!refuses(&app, key).await, "{key}");
    }
    let refused = send(&app, charge("201-another", "{}")).await;
    assert!(is_refused(&refused));
    assert_eq!(refused.headers["retry-after"], "60");
    sleep(Duration::from_mins(1)).await;
    assert!(!refuses(&app, "201-another").await);
}

#[tokio::test]
async fn bytes_count_once_an_outcome_is_kept_and_only_then() {
    for (key, counts) in [("201-kept", true), ("401-given-back", false), ("500-failed", false)] {
        let world = World::new();
        let app = answering(&world, bounded(Quotas { bytes: Some(12), ..Quotas::default() }));
        for _ in 0..3 {
            send(&app, charge(key, "{}")).await;
        }
        assert_eq!(refuses(&app, "201-another").await, counts, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_counts_for_its_own_retention() {
    let world = World::new();
    let mut settings = ruled(|rules| rules.retention = Duration::from_mins(64));
    settings.quotas = Some(records(1));
    let app = answering(&world, settings);
    assert!(!refuses(&app, "201-kept").await);
    sleep(Duration::from_mins(63)).await;
    let refused = send(&app, charge("201-another", "{}")).await;
    assert!(is_refused(&refused));
    assert_eq!(refused.headers["retry-after"], "120");
    sleep(Duration::from_mins(2)).await;
    assert!(!refuses(&app, "201-another").await);
}

#[tokio::test]
async fn a_reload_keeps_what_was_counted_and_takes_the_new_bounds() {
    let world = World::new();
    let first = world.layer(bounded(records(2)));
    let handler = |_| async { answer(201, "made") };
    let app = world.app(&first, handler);
    for key in ["a", "b"] {
        assert!(!refuses(&app, key).await);
    }
    for (key, most, is_over) in [("c", 2, true), ("c", 3, false), ("d", 3, true), ("d", 4, false)] {
        let principal = Principal::header("authorization");
        let reloaded = first.reloaded(principal, bounded(records(most))).unwrap();
        assert_eq!(refuses(&world.app(&reloaded, handler), key).await, is_over, "{key} {most}");
    }
    assert_eq!(world.calls(), 4);
}

#[tokio::test]
async fn what_one_caller_counts_leaves_the_next_one_all_of_its_own() {
    let world = World::new();
    let app = answering(&world, bounded(records(1)));
    for caller in ["Bearer alice", "Bearer bob"] {
        for (key, expected) in [("201-a", false), ("201-b", true)] {
            let mut request = charge(key, "{}");
            request.headers_mut().insert("authorization", HeaderValue::from_static(caller));
            assert_eq!(is_refused(&send(&app, request).await), expected, "{caller} {key}");
        }
    }
}
