//! Work of one's own: receipt and offset in one go.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use semel::{ErrorKind, RecordedOnce, Result};
use semel_stream::{Commit, Consumer, Order, Task, Work, Worked};
use test_streams::feed::Feed;

use super::scene::{Ledger, event, events, fine, pipeline};

/// Writes the receipt, and moves the offset with it where it may.
struct OffsetToo;

impl Work for OffsetToo {
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        Box::pin(async move {
            task.saw_effect();
            let recorded = task.pipeline.semel().record_once(task.claim()?, fine().unwrap()).await?;
            if !matches!(recorded, RecordedOnce::Recorded(_)) {
                return Ok(Worked::Duplicate);
            }
            let (Some(reader), Some(position)) = (task.reader, task.event.position) else {
                return Ok(Worked::Ran { attempt: 1 });
            };
            match reader.commit(position, task.event.id.as_deref()).await? {
                Commit::Committed(_) => Ok(Worked::OffsetToo { attempt: 1 }),
                Commit::Fenced(_) => Ok(Worked::Fenced),
                Commit::Behind(at) => panic!("nothing is behind {at:?}"),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_moves_the_offset_itself_moves_it_with_each_event_in_order() {
    let (pipeline, feed, ledger) = (pipeline(), Feed::alone(events("a", 30)).end(), Ledger::default());
    let consumer =
        Consumer::new(pipeline.clone(), feed.source()).order(Order::Stream).watch(Arc::new(ledger.clone()));
    let report = consumer.run_with(OffsetToo).await.unwrap();
    assert_eq!((report.ran, report.committed), (30, 30));
    assert_eq!(ledger.read().offsets["a"], (1..=30).collect::<Vec<_>>());
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
    assert_eq!(feed.acknowledged().len(), 30);
}

#[tokio::test(start_paused = true)]
async fn work_in_parallel_may_move_the_offset_only_where_nothing_before_it_is_open() {
    let (feed, ledger) = (Feed::alone(events("a", 300)).end(), Ledger::default());
    let consumer = Consumer::new(pipeline(), feed.source()).parallel(16).watch(Arc::new(ledger.clone()));
    let report = consumer.run_with(OffsetToo).await.unwrap();
    assert_eq!((report.ran, report.offsets["a"].get()), (300, 300));
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}

/// Says that somebody else reads the first stream.
struct Fenced;

impl Work for Fenced {
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        let is_first = &*task.event.stream == "a";
        Box::pin(async move { Ok(if is_first { Worked::Fenced } else { Worked::Ran { attempt: 1 } }) })
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_is_fenced_ends_its_stream() {
    let feed = Feed::alone([event("a", 1)]).end();
    let error = Consumer::new(pipeline(), feed.source()).run_with(Fenced).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(feed.acknowledged().is_empty());

    let feed = Feed::alone([event("a", 1), event("b", 1)]).end();
    let report = Consumer::new(pipeline(), feed.source()).run_with(Fenced).await.unwrap();
    assert_eq!((report.ran, feed.acknowledged()), (1, vec!["b-1".to_owned()]));
}
