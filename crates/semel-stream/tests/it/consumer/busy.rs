//! Events that run elsewhere, and events that nobody may run.

use std::sync::Arc;
use std::time::Duration;

use semel::{Decision, Lapse, Outcome, Resolution, Semel};
use semel_stream::{Consumer, OnBusy, OnHeld, Order, Pipeline};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, event, events, fine, memory, pipeline, until};

/// Somebody else who processes an event.
async fn elsewhere(pipeline: &Pipeline, key: &str) -> semel::Permit {
    match pipeline.claim(key).await.unwrap() {
        Decision::Run(permit) => permit,
        other => panic!("it must run: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_not_acknowledged_before_the_other_ones_receipt() {
    for on_busy in [OnBusy::Wait, OnBusy::GiveBack] {
        let (pipeline, feed, ledger) = (pipeline(), Feed::shared([event("a", 1)]).end(), Ledger::default());
        let permit = elsewhere(&pipeline, "a-1").await;
        let heartbeat = permit.heartbeat();
        let consumer = Consumer::new(pipeline.clone(), feed.source())
            .on_busy(on_busy)
            .backoff(QUICK)
            .watch(Arc::new(ledger.clone()));
        let run = tokio::spawn(consumer.run(|_, _| async { panic!("it ran twice") }));
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert!(feed.acknowledged().is_empty() && ledger.count("busy") > 1, "{on_busy:?}");
        assert_eq!(feed.given_back() > 1, on_busy == OnBusy::GiveBack);
        permit.complete(Outcome::success("elsewhere")).await.unwrap();
        drop(heartbeat);
        let report = run.await.unwrap().unwrap();
        assert_eq!((report.ran, report.duplicates), (0, 1));
        assert_eq!(feed.acknowledged(), ["a-1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_other_consumer_failed_is_processed_after_all() {
    let (pipeline, feed) = (pipeline(), Feed::shared([event("a", 1)]).end());
    let permit = elsewhere(&pipeline, "a-1").await;
    let run = tokio::spawn(Consumer::new(pipeline, feed.source()).run(|_, _| async { fine() }));
    tokio::time::sleep(Duration::from_secs(5)).await;
    permit.release("it failed there").await.unwrap();
    assert_eq!(run.await.unwrap().unwrap().ran, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_other_consumer_died_is_processed_when_its_lease_is_over() {
    let (pipeline, feed) = (pipeline(), Feed::alone(events("a", 3)).end());
    drop(elsewhere(&pipeline, "a-2").await);
    let report = Consumer::new(pipeline.clone(), feed.source())
        .run(|_, permit| async move {
            assert!(permit.attempt() <= 2);
            fine()
        })
        .await
        .unwrap();
    assert_eq!(report.ran, 3);
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 3);
}

#[tokio::test(start_paused = true)]
async fn with_an_order_a_busy_event_is_waited_for_and_not_overtaken() {
    let (pipeline, feed, ledger) = (pipeline(), Feed::shared(events("a", 4)).end(), Ledger::default());
    let permit = elsewhere(&pipeline, "a-1").await;
    let consumer = Consumer::new(pipeline, feed.source())
        .order(Order::Stream)
        .on_busy(OnBusy::GiveBack)
        .watch(Arc::new(ledger.clone()));
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((ledger.count("effect"), feed.given_back()), (0, 0));
    permit.complete(Outcome::success("")).await.unwrap();
    assert_eq!(run.await.unwrap().unwrap().ran, 3);
    assert_eq!(feed.acknowledged(), ["a-1", "a-2", "a-3", "a-4"]);
}

/// A pipeline in which a run that dies is held, and one event is.
async fn with_a_held_event() -> Pipeline {
    let semel = Semel::new(memory());
    let pipeline = Pipeline::builder(&semel, "orders").lapse(Lapse::Hold).build().unwrap();
    elsewhere(&pipeline, "a-2").await.hold("who knows").await.unwrap();
    pipeline
}

#[tokio::test(start_paused = true)]
async fn a_held_event_holds_the_offset_and_nothing_else_until_somebody_resolves_it() {
    let (pipeline, feed, ledger) =
        (with_a_held_event().await, Feed::alone(events("a", 9)).end(), Ledger::default());
    let consumer = Consumer::new(pipeline.clone(), feed.source()).watch(Arc::new(ledger.clone()));
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    until("the others ran", || ledger.count("receipt") == 8).await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(ledger.read().offsets["a"], [1]);
    let key = pipeline.receipt_key("a-2").unwrap();
    pipeline.semel().resolve(&key, Resolution::Release { reason: "it did not land".into() }).await.unwrap();
    assert_eq!(run.await.unwrap().unwrap().ran, 9);
    assert_eq!(ledger.read().offsets["a"], [1, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_held_event_stops_the_consumer_or_goes_back_if_that_is_wanted() {
    let (pipeline, feed) = (with_a_held_event().await, Feed::alone(events("a", 9)).end());
    let consumer = Consumer::new(pipeline.clone(), feed.source()).on_held(OnHeld::Stop);
    let error = consumer.run(|_, _| async { fine() }).await.unwrap_err();
    assert!(error.to_string().contains("held (who knows)"), "{error}");
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 1);

    let (pipeline, feed) = (with_a_held_event().await, Feed::shared(events("a", 3)));
    let consumer = Consumer::new(pipeline, feed.source()).on_held(OnHeld::GiveBack);
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    until("it went back", || feed.given_back() > 2).await;
    stopper.stop();
    assert_eq!(run.await.unwrap().unwrap().ran, 2);
    assert_eq!(feed.acknowledged(), ["a-1", "a-3"]);
}
