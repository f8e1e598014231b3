//! Effects that commit together with their receipt and the offset.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use semel::{Error, ErrorKind, Outcome, Semel};
use semel_postgres::{Connecting, InTransaction, InTransactionHandled, PostgresStore};
use semel_stream::{Backoff, Consumer, Event, Failure, Order, Pipeline, Position};
use test_streams::feed::{Feed, FeedSource};
use tokio_postgres::{NoTls, Transaction};

fn connecting(url: &str) -> impl Fn() -> Connecting + Send + Sync + 'static {
    let url = url.to_owned();
    move || {
        let url = url.clone();
        Box::pin(async move {
            let reached = tokio_postgres::connect(&url, NoTls).await;
            let (client, connection) =
                reached.map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        })
    }
}

/// A database with a table for effects, and a pipeline in it.
struct World {
    url: String,
    pipeline: Pipeline,
}

impl World {
    /// On the server that tests share, in a database of its own.
    async fn new() -> Self {
        let server = test_services::postgres_url().unwrap();
        let name = format!("charged_{:016x}", rand::random::<u64>());
        let client = connecting(&server)().await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        semel_postgres::migrate(&url).await.unwrap();
        let client = connecting(&url)().await.unwrap();
        client.batch_execute("CREATE TABLE charged (event text)").await.unwrap();
        let semel = Semel::new(PostgresStore::connect(&url).await.unwrap());
        Self { pipeline: Pipeline::new(&semel, "orders").unwrap(), url }
    }

    /// How many rows there are, and for how many events.
    async fn charged(&self) -> (i64, i64) {
        let client = connecting(&self.url)().await.unwrap();
        let row = client.query_one("SELECT count(*), count(DISTINCT event) FROM charged", &[]).await.unwrap();
        (row.get(0), row.get(1))
    }

    fn consumer(&self, feed: &Feed) -> Consumer<FeedSource> {
        let backoff = Backoff { first: std::time::Duration::from_millis(5), ..Backoff::default() };
        Consumer::new(self.pipeline.clone(), feed.source()).order(Order::Stream).backoff(backoff)
    }
}

fn charge<'a>(event: &'a Event, transaction: &'a Transaction<'a>) -> InTransactionHandled<'a> {
    Box::pin(async move {
        let id = event.id.as_deref();
        transaction.execute("INSERT INTO charged VALUES ($1)", &[&id]).await?;
        Ok(Outcome::success("charged"))
    })
}

fn log(count: u128) -> Feed {
    Feed::alone((1..=count).map(|n| Event::new("topic/0", &format!("order-{n}"), "{}").at(n))).end()
}

async fn reads_twice(world: &World, work: impl Fn() -> InTransaction) {
    let report = world.consumer(&log(30)).run_with(work()).await.unwrap();
    assert_eq!((report.ran, world.charged().await), (30, (30, 30)));
    let offset = world.pipeline.offset("topic/0").await.unwrap().unwrap();
    assert_eq!((offset.position, offset.last_event.as_deref()), (Some(Position::new(30)), Some("order-30")));
    world.pipeline.rewind("topic/0", None).await.unwrap();
    let again = world.consumer(&log(30)).run_with(work()).await.unwrap();
    assert_eq!((again.ran, again.duplicates, world.charged().await), (0, 30, (30, 30)));
}

#[tokio::test]
async fn effect_receipt_and_offset_are_one_commit_and_a_second_read_adds_nothing() {
    let world = World::new().await;
    let work =
        || InTransaction::new(connecting(&world.url), |event, _, transaction| charge(event, transaction));
    reads_twice(&world, work).await;
}

#[tokio::test]
async fn the_same_with_prepared_statements() {
    let world = World::new().await;
    let work =
        || InTransaction::new(connecting(&world.url), |event, _, transaction| charge(event, transaction));
    reads_twice(&world, || work().prepared()).await;
}

#[tokio::test]
async fn what_a_failed_attempt_wrote_is_rolled_back() {
    let world = World::new().await;
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let work = InTransaction::new(connecting(&world.url), move |event, _, transaction| {
        let is_odd = counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        Box::pin(async move {
            let charged = charge(event, transaction).await?;
            if is_odd { Err(Failure::Retry("after the effect".into())) } else { Ok(charged) }
        })
    });
    let report = world.consumer(&log(10)).run_with(work).await.unwrap();
    assert_eq!((report.ran, report.retries, tries.load(Ordering::SeqCst)), (10, 10, 20));
    assert_eq!(world.charged().await, (10, 10));
}

#[tokio::test]
async fn an_effect_of_a_reader_that_was_replaced_does_not_commit() {
    let world = World::new().await;
    let (pipeline, url) = (world.pipeline.clone(), world.url.clone());
    let work = InTransaction::new(connecting(&url), move |event, _, transaction| {
        let pipeline = pipeline.clone();
        Box::pin(async move {
            let charged = charge(event, transaction).await?;
            if event.position == Some(Position::new(4)) {
                // Somebody else begins to read while this one is at it.
                pipeline.take("topic/0").await?;
            }
            Ok(charged)
        })
    });
    let ended = world.consumer(&log(10)).run_with(work).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(world.charged().await, (3, 3));
    let offset = world.pipeline.offset("topic/0").await.unwrap().unwrap();
    assert_eq!(offset.position, Some(Position::new(3)));
}
