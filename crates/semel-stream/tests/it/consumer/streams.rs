//! Streams that come and go, and readers that were replaced.

use std::sync::Arc;
use std::time::Duration;

use semel::ErrorKind;
use semel_stream::source::Fetched;
use semel_stream::{Checkpoint, Consumer};
use test_streams::feed::Feed;

use super::scene::{Ledger, event, events, fine, pipeline, unseen, until};

#[tokio::test(start_paused = true)]
async fn a_reader_that_was_replaced_stops_and_the_offset_is_the_others() {
    let (pipeline, feed) = (pipeline(), Feed::alone(events("a", 5)));
    let consumer = Consumer::new(pipeline.clone(), feed.source()).checkpoint(Checkpoint::EachEvent);
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    until("five are done", || stopper.report().ran == 5 && stopper.report().committed > 0).await;
    let other = pipeline.take("a").await.unwrap();
    feed.push(event("a", 6));
    let error = run.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    let offset = pipeline.offset("a").await.unwrap().unwrap();
    assert_eq!((offset.epoch, offset.position.unwrap().get()), (other.epoch(), 5));
    assert_eq!(unseen(&pipeline, &["a-6"]).await, [false], "what ran has its receipt");
}

#[tokio::test(start_paused = true)]
async fn a_fenced_stream_is_left_and_the_others_go_on() {
    let (pipeline, feed, ledger) =
        (pipeline(), Feed::alone(events("a", 3).into_iter().chain(events("b", 3))), Ledger::default());
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .checkpoint(Checkpoint::EachEvent)
        .watch(Arc::new(ledger.clone()));
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    until("all are done", || feed.acknowledged().len() == 6).await;
    pipeline.rewind("a", None).await.unwrap();
    for position in 4..=9 {
        feed.push(event("a", position));
        feed.push(event("b", position));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until("the others are done", || ledger.read().offsets["b"].last() == Some(&9)).await;
    stopper.stop();
    run.await.unwrap().unwrap();
    assert_eq!(ledger.read().offsets["a"].last(), Some(&3));
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position, None);
    assert!(ledger.place_of("delivered a-9").is_none(), "nobody works on it any more");
}

#[tokio::test(start_paused = true)]
async fn what_is_revoked_while_it_runs_is_neither_committed_nor_acknowledged() {
    let (pipeline, feed, ledger) = (pipeline(), Feed::alone(events("a", 4)), Ledger::default());
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .parallel(8)
        .checkpoint(Checkpoint::EachEvent)
        .watch(Arc::new(ledger.clone()));
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        fine()
    }));
    until("it runs", || ledger.count("delivered") == 4).await;
    feed.tell(1, Fetched::Revoked(vec!["a".into()]));
    until("they ran", || ledger.count("receipt") == 4).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((ledger.count("receipt"), ledger.count("offset"), ledger.count("acknowledged")), (4, 0, 0));
    // It comes back: what has a receipt is not processed again.
    feed.tell(1, Fetched::Assigned(vec!["a".into()]));
    until("all is committed", || ledger.count("acknowledged") == 4).await;
    stopper.stop();
    let report = run.await.unwrap().unwrap();
    assert_eq!((report.ran, report.duplicates, report.offsets["a"].get()), (4, 4, 4));
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}
