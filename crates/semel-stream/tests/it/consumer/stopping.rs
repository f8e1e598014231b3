//! How a consumer ends.

use std::sync::Arc;
use std::time::Duration;

use semel::ErrorKind;
use semel_stream::{Consumer, Failure};
use test_streams::feed::Feed;
use tokio::time::Instant;

use super::scene::{Ledger, event, events, fine, pipeline, unseen, until};

#[tokio::test(start_paused = true)]
async fn what_runs_ends_before_the_consumer_does_and_nothing_more_begins() {
    for feed in [Feed::alone(events("a", 100)), Feed::shared(events("a", 100))] {
        let (pipeline, ledger) = (pipeline(), Ledger::default());
        let consumer =
            Consumer::new(pipeline.clone(), feed.source()).parallel(5).watch(Arc::new(ledger.clone()));
        let stopper = consumer.stopper();
        let run = tokio::spawn(consumer.run(|_, _| async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            fine()
        }));
        until("five run", || ledger.count("delivered") >= 10).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let started_at = Instant::now();
        stopper.stop();
        let report = run.await.unwrap().unwrap();
        assert!(started_at.elapsed() > Duration::from_secs(19), "they were let end");
        assert_eq!((report.ran, ledger.count("effect"), ledger.count("acknowledged")), (5, 5, 5));
        assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 5);
        assert_eq!(feed.acknowledged().len(), 5);
        assert_eq!(ledger.read().faults, [] as [&str; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_for_events_or_retries_stops_at_once() {
    let feed = Feed::shared([event("a", 1)]);
    let consumer = Consumer::new(pipeline(), feed.source());
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async { Err(Failure::Retry("later".into())) }));
    until("it failed often", || stopper.report().retries > 6).await;
    let started_at = Instant::now();
    stopper.stop();
    let report = run.await.unwrap().unwrap();
    assert!(started_at.elapsed() < Duration::from_secs(1));
    assert_eq!((report.given_back, feed.acknowledged().len()), (1, 0));
    assert!(format!("{stopper:?}").contains("true"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_says_stop_stops_everything_and_its_event_stays_unprocessed() {
    let (pipeline, ledger) = (pipeline(), Ledger::default());
    let feed = Feed::alone(events("a", 50)).end();
    let consumer = Consumer::new(pipeline.clone(), feed.source()).parallel(8).watch(Arc::new(ledger.clone()));
    let error = consumer
        .run(|event, _| async move {
            match event.position.unwrap().get() {
                10 => Err(Failure::Stop("the account is closed".into())),
                _ => fine(),
            }
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("the account is closed"), "{error}");
    assert_eq!(unseen(&pipeline, &["a-10"]).await, [true]);
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 9);
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
    // It was released, and whoever mends it goes on from there.
    let again = Consumer::new(pipeline.clone(), Feed::alone(events("a", 50)).end().source());
    let report = again.run(|_, _| async { fine() }).await.unwrap();
    assert_eq!(report.offsets["a"].get(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_gone_for_good_does_not_keep_a_consumer_from_stopping() {
    let feed = Feed::shared(events("a", 3));
    let consumer = Consumer::new(pipeline(), feed.source());
    let stopper = consumer.stopper();
    let broker = feed.clone();
    let run = tokio::spawn(consumer.run(move |_, _| {
        broker.set_down(true);
        async { fine() }
    }));
    until("all are done", || stopper.report().ran == 3).await;
    let started_at = Instant::now();
    stopper.stop();
    assert_eq!(run.await.unwrap().unwrap().ran, 3);
    assert!(started_at.elapsed() < Duration::from_secs(30));
    assert!(feed.acknowledged().is_empty());
}
