//! Events without a key.

use std::sync::{Arc, Mutex};

use semel::ErrorKind;
use semel_stream::{Consumer, Event, EventKey, OnMissingKey, Report};
use test_streams::feed::Feed;

use super::scene::{Ledger, fine, pipeline};

fn log() -> Feed {
    let keyed = |position: u128, payload: &str| Event::new("a", "same", payload.to_owned()).at(position);
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(4_000));
    Feed::alone([
        keyed(1, r#"{"id":1}"#),
        keyed(2, "{}"),
        keyed(3, r#"{"id":""}"#),
        keyed(4, &long),
        keyed(5, r#"{"id":2}"#),
    ])
    .end()
}

async fn run(feed: &Feed, policy: OnMissingKey, ledger: &Ledger) -> (semel::Result<Report>, Vec<u128>) {
    let ran: Arc<Mutex<Vec<u128>>> = Arc::default();
    let noted = Arc::clone(&ran);
    let consumer = Consumer::new(pipeline(), feed.source())
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(policy)
        .parallel(1)
        .watch(Arc::new(ledger.clone()));
    let report = consumer
        .run(move |event, _| {
            noted.lock().unwrap().push(event.position.unwrap().get());
            async { fine() }
        })
        .await;
    let mut ran = ran.lock().unwrap().clone();
    ran.sort_unstable();
    (report, ran)
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_key_stops_the_consumer_and_is_not_passed() {
    let ledger = Ledger::default();
    let (report, ran) = run(&log(), OnMissingKey::Stop, &ledger).await;
    let error = report.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("a at 2 has no key"), "{error}");
    assert!(ran.iter().all(|position| *position == 1));
    assert!(ledger.read().offsets.get("a").is_none_or(|offsets| offsets == &[1]));
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_key_is_put_aside_if_that_is_wanted() {
    let (report, ran) = run(&log(), OnMissingKey::DeadLetter, &Ledger::default()).await;
    let report = report.unwrap();
    assert_eq!((report.ran, report.dead_letters), (2, 3));
    assert_eq!(report.offsets["a"].get(), 5);
    assert_eq!(ran, [1, 5]);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_key_is_processed_as_often_as_it_comes_if_that_is_wanted() {
    let (report, ran) = run(&log(), OnMissingKey::Unprotected, &Ledger::default()).await;
    assert_eq!((report.unwrap().ran, ran), (5, vec![1, 2, 3, 4, 5]));
    let twice = Feed::shared([Event::new("a", "e", "{}"), Event::new("a", "e", "{}")]).end();
    let report = Consumer::new(pipeline(), twice.source())
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(OnMissingKey::Unprotected)
        .run(|_, permit| async move {
            assert!(permit.is_unprotected());
            fine()
        })
        .await
        .unwrap();
    assert_eq!((report.ran, report.duplicates), (2, 0));
}
