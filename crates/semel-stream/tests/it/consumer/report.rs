//! The numbers.

use std::time::Duration;

use semel_stream::{Consumer, Failure};
use test_streams::feed::Feed;

use super::scene::{QUICK, event, events, fine, pipeline, until};

#[tokio::test(start_paused = true)]
async fn a_report_counts_everything_that_happened() {
    let feed = Feed::alone(events("a", 10).into_iter().chain([event("b", 1)])).end();
    feed.push(event("a", 10).at(11));
    let consumer = Consumer::new(pipeline(), feed.source()).attempts_max(2).backoff(QUICK).parallel(1);
    let stopper = consumer.stopper();
    assert_eq!(stopper.report(), semel_stream::Report::default());
    let report = consumer
        .run(|event, permit| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            match (event.position.unwrap().get(), permit.attempt()) {
                (3, 1) | (4, _) => Err(Failure::Retry("no".into())),
                _ => fine(),
            }
        })
        .await
        .unwrap();
    assert_eq!((report.delivered, report.ran, report.duplicates), (12, 10, 1));
    assert_eq!((report.retries, report.dead_letters, report.given_back), (2, 1, 0));
    assert_eq!(report.lag, Some(0));
    assert!(report.events_per_second > 7.0 && report.events_per_second < 11.0, "{report:?}");
    assert_eq!(
        report.offsets.iter().map(|(stream, at)| (&**stream, at.get())).collect::<Vec<_>>(),
        [("a", 11), ("b", 1)]
    );
    assert_eq!(stopper.report(), report);
}

#[tokio::test(start_paused = true)]
async fn a_report_says_how_much_is_left_while_it_runs() {
    let (pipeline, feed) = (pipeline(), Feed::alone(events("a", 500)));
    let consumer = Consumer::new(pipeline.clone(), feed.source()).parallel(2);
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fine()
    }));
    until("it knows", || stopper.report().lag.is_some_and(|lag| lag < 490)).await;
    stopper.stop();
    run.await.unwrap().unwrap();
    let noted = pipeline.offset("a").await.unwrap().unwrap().lag;
    assert!(noted.is_some_and(|lag| (1..500).contains(&lag)), "people see it in the offset: {noted:?}");
}
