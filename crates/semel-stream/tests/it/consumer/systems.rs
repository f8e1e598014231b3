//! What other systems do with streams, done here, on every store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use semel::Semel;
use semel::store::Store;
use semel_stream::{Checkpoint, Commit, Consumer, Event, EventKey, Failure, Order, Pipeline, Position};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, event, events, fine, unseen};

type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>>>>;

/// A place with a store of one kind, which can be opened again as after a restart.
struct Place {
    open: Box<dyn Fn() -> Opening>,
    pipeline: String,
}

impl Place {
    fn new<S: Store>(open: impl AsyncFn() -> S + Clone + 'static) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let open = move || -> Opening {
            let open = open.clone();
            Box::pin(async move { Arc::new(open().await) as Arc<dyn Store> })
        };
        // Servers are shared with other tests, and with other runs of this one.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pipeline = format!("orders-{}-{number}-{:016x}", std::process::id(), rand::random::<u64>());
        Self { open: Box::new(open), pipeline }
    }

    /// A new process, as far as it can be told: nothing is shared with the one before but the store.
    async fn start(&self) -> Pipeline {
        let semel = Semel::builder_shared((self.open)().await).build().unwrap();
        Pipeline::new(&semel, &self.pipeline).unwrap()
    }
}

/// The same store each time: what is in memory survives no restart, only a new engine.
fn memory() -> Place {
    let store = Arc::new(semel::store::MemoryStore::new());
    let mut place = Place::new(async || semel::store::MemoryStore::new());
    place.open = Box::new(move || {
        let store = Arc::clone(&store);
        Box::pin(async move { store as Arc<dyn Store> })
    });
    place
}

fn file() -> Place {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    Place::new(async move || {
        // The engine before may still be closing its store.
        for _ in 0..500 {
            match semel_file::FileStore::open(folder.path()) {
                Ok(store) => return store,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        }
        panic!("the store opens");
    })
}

fn postgres() -> Place {
    let url = Arc::new(test_services::postgres_url().unwrap());
    Place::new(async move || {
        semel_postgres::migrate(&url).await.unwrap();
        semel_postgres::PostgresStore::connect(&url).await.unwrap()
    })
}

fn redis() -> Place {
    let url = Arc::new(test_services::redis_url().unwrap());
    Place::new(async move || semel_redis::RedisStore::connect(&url).await.unwrap())
}

async fn allsource_offsets_by_pipeline_and_stream_are_resumed_after_a_restart(place: Place) {
    let log = || Feed::alone(events("a", 30).into_iter().chain(events("b", 7))).end();
    {
        let first = Consumer::new(place.start().await, log().source()).order(Order::Stream);
        let stopper = first.stopper();
        let counted = stopper.clone();
        let run = first.run(move |event, _| {
            if &*event.stream == "a" && event.position.unwrap().get() == 20 {
                counted.stop();
            }
            async { fine() }
        });
        run.await.unwrap();
    }
    let pipeline = place.start().await;
    let a = pipeline.offset("a").await.unwrap().unwrap();
    assert_eq!((a.position, a.last_event.as_deref()), (Some(Position::new(20)), Some("a-20")));
    let second = Consumer::new(pipeline.clone(), log().source());
    let report = second.run(|_, permit| async move {
        assert_eq!(permit.attempt(), 1);
        fine()
    });
    assert_eq!(report.await.unwrap().offsets["a"].get(), 30);
    let offsets = pipeline.offsets().await.unwrap();
    let read: Vec<_> =
        offsets.iter().map(|at| (&*at.stream, at.offset.last_event.as_deref().unwrap())).collect();
    assert_eq!(read, [("a", "a-30"), ("b", "b-7")]);
    assert!(offsets.iter().all(|at| at.offset.epoch == 2));
}

async fn allsource_receipts_keep_replays_from_being_processed_again(place: Place) {
    let log = || Feed::alone(events("a", 40)).end();
    let ran = Arc::new(AtomicU32::new(0));
    for turn in 0..3_u64 {
        let pipeline = place.start().await;
        pipeline.rewind("a", None).await.unwrap();
        let ran = Arc::clone(&ran);
        let consumer = Consumer::new(pipeline, log().source());
        let report = consumer
            .run(move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                async { fine() }
            })
            .await
            .unwrap();
        assert_eq!(report.duplicates, if turn == 0 { 0 } else { 40 });
    }
    assert_eq!(ran.load(Ordering::SeqCst), 40);
}

async fn allsource_statistics_count_what_was_done(place: Place) {
    let feed = Feed::alone(events("a", 9)).end();
    feed.push(event("a", 9).at(10));
    let consumer = Consumer::new(place.start().await, feed.source()).attempts_max(2).backoff(QUICK);
    let report = consumer
        .run(|event, _| async move {
            if event.position.unwrap().get() == 4 { Err(Failure::Retry("no".into())) } else { fine() }
        })
        .await
        .unwrap();
    assert_eq!((report.delivered, report.ran, report.duplicates), (10, 8, 1));
    assert_eq!((report.retries, report.dead_letters, report.lag), (1, 1, Some(0)));
    assert!(report.events_per_second > 0.0 && report.committed > 0);
}

async fn allsource_the_key_is_in_the_metadata_of_the_event(place: Place) {
    let event = |position: u128, key: &str| {
        let payload = format!(r#"{{"metadata":{{"idempotency_key":"{key}"}},"amount":{position}}}"#);
        Event::new("a", &format!("broker-{position}"), payload).at(position)
    };
    let feed = Feed::alone([event(1, "k1"), event(2, "k2"), event(3, "k1"), event(4, "k3")]).end();
    let pipeline = place.start().await;
    let consumer =
        Consumer::new(pipeline.clone(), feed.source()).key(EventKey::Metadata("idempotency_key".into()));
    let report = consumer.run(|_, _| async { fine() }).await.unwrap();
    assert_eq!((report.ran, report.duplicates, report.offsets["a"].get()), (3, 1, 4));
    let unseen = unseen(&pipeline, &[r#""k1""#, r#""k2""#, r#""k3""#, "broker-1"]).await;
    assert_eq!(unseen, [false, false, false, true]);
}

async fn liminal_a_cursor_refuses_to_go_back(place: Place) {
    let pipeline = place.start().await;
    let feed = Feed::alone(events("a", 10)).end();
    Consumer::new(pipeline.clone(), feed.source()).run(|_, _| async { fine() }).await.unwrap();
    let reader = pipeline.take("a").await.unwrap();
    let refused = reader.commit(Position::new(4), Some("a-4")).await.unwrap();
    assert!(matches!(&refused, Commit::Behind(at) if at.position == Some(Position::new(10))), "{refused:?}");
    let rewound = pipeline.rewind("a", Some(Position::new(4))).await.unwrap();
    assert_eq!(rewound.position, Some(Position::new(4)), "unless somebody says so");
}

async fn liminal_checkpoints_per_message_per_batch_and_explicit(place: Place) {
    let pipeline = place.start().await;
    for (stream, checkpoint, expected) in [
        ("each", Checkpoint::EachEvent, vec![1, 2, 3, 4, 5, 6, 7]),
        ("batch", Checkpoint::Every(3), vec![3, 6, 7]),
        ("explicit", Checkpoint::Explicit, vec![7]),
    ] {
        let (ledger, feed) = (Ledger::default(), Feed::alone(events(stream, 7)));
        let watched = Arc::new(ledger.clone());
        let consumer = Consumer::new(pipeline.clone(), feed.source())
            .order(Order::Stream)
            .checkpoint(checkpoint)
            .watch(watched);
        let stopper = consumer.stopper();
        let seen = ledger.clone();
        // Each event waits until the one before it is committed, where it ought to be.
        let run = tokio::spawn(consumer.run(move |event, _| {
            let (seen, at) = (seen.clone(), event.position.unwrap().get());
            async move {
                let due = match checkpoint {
                    Checkpoint::EachEvent => at - 1,
                    Checkpoint::Every(_) => (at - 1) / 3 * 3,
                    _ => 0,
                };
                super::scene::until("it is committed", || {
                    due == 0 || seen.read().offsets.values().flatten().any(|offset| *offset == due)
                })
                .await;
                fine()
            }
        }));
        super::scene::until("all are done", || stopper.report().ran == 7).await;
        if checkpoint == Checkpoint::Explicit {
            stopper.checkpoint();
            super::scene::until("it is committed", || stopper.report().committed == 1).await;
        }
        stopper.stop();
        run.await.unwrap().unwrap();
        assert_eq!(ledger.read().offsets[stream], expected, "{checkpoint:?}");
    }
}

macro_rules! on_every_store {
    ($($test:ident)*) => {
        on_every_store!(@ memory $($test)*);
        on_every_store!(@ file $($test)*);
        on_every_store!(@ postgres $($test)*);
        on_every_store!(@ redis $($test)*);
    };
    (@ $store:ident $($test:ident)*) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(super::$store()).await;
                }
            )*
        }
    };
}

on_every_store! {
    allsource_offsets_by_pipeline_and_stream_are_resumed_after_a_restart
    allsource_receipts_keep_replays_from_being_processed_again
    allsource_statistics_count_what_was_done
    allsource_the_key_is_in_the_metadata_of_the_event
    liminal_a_cursor_refuses_to_go_back
    liminal_checkpoints_per_message_per_batch_and_explicit
}
