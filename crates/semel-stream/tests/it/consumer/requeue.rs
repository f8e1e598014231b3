//! Dead letters keep their payloads, and are processed once more when they are sent back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::{MemoryStore, Store};
use semel::{Permit, Semel};
use semel_stream::{
    Consumer, Event, EventId, EventKey, EventRecord, EventState, Failure, KeptLetter, KeptPayload,
    OnMissingKey, Pipeline, ReceiptFilter, ReceiptsAfter, Report, Requeue, RequeueAsk, Step, Watch,
};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, event, events, fine, pipeline, until};

fn ask(name: &str) -> RequeueAsk {
    RequeueAsk { event: EventId::Keyed(name.into()), requeues_before: None }
}

async fn requeue(pipeline: &Pipeline, name: &str) -> Requeue {
    pipeline.requeue(&[ask(name)]).await.unwrap()[0]
}

async fn found(pipeline: &Pipeline, event: &EventId) -> EventRecord {
    pipeline.events(std::slice::from_ref(event)).await.unwrap().remove(0).unwrap().unwrap()
}

async fn keyed(pipeline: &Pipeline, name: &str) -> EventRecord {
    found(pipeline, &EventId::Keyed(name.into())).await
}

async fn listed(pipeline: &Pipeline, states: &[EventState]) -> Vec<EventRecord> {
    let filter = ReceiptFilter { states: states.to_vec(), event: None };
    pipeline.receipts(&filter, ReceiptsAfter { after: None, limit: 1_000 }).await.unwrap().events
}

/// Has every event of a log put aside.
async fn put_aside(pipeline: &Pipeline, events: Vec<Event>) {
    let consumer = Consumer::new(pipeline.clone(), Feed::alone(events).end().source());
    consumer.run(|_, _| async { Err(Failure::Dead("not an order".into())) }).await.unwrap();
}

/// A consumer of a log that has ended: it works off what was requeued, and ends.
async fn consumed(pipeline: &Pipeline, runs: &Runs) -> Report {
    let runs = runs.clone();
    let consumer = Consumer::new(pipeline.clone(), Feed::alone([]).end().source()).backoff(QUICK);
    consumer.run(move |event, permit| runs.note(event, &permit)).await.unwrap()
}

/// What handlers were given.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<Run>>>);

/// An event, the attempt, and the derived key.
type Run = (Arc<Event>, u32, String);

impl Runs {
    fn note(
        &self,
        event: Arc<Event>,
        permit: &Permit,
    ) -> impl Future<Output = semel_stream::Handled> + use<> {
        self.0.lock().unwrap().push((event, permit.attempt(), permit.derive("effect")));
        async { fine() }
    }

    fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().iter().map(|(event, ..)| Event::clone(event)).collect()
    }

    fn attempts(&self) -> Vec<u32> {
        self.0.lock().unwrap().iter().map(|(_, attempt, _)| *attempt).collect()
    }

    /// Effects as a system further down counts them that knows a derived key again.
    fn effects(&self) -> usize {
        let runs = self.0.lock().unwrap();
        runs.iter().map(|(_, _, key)| key).collect::<BTreeSet<_>>().len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_requeued_event_is_processed_once_as_it_was_and_its_first_receipt_stays_as_it_is() {
    let (pipeline, runs) = (pipeline(), Runs::default());
    let sent = Event::new("a", "a-1", &b"\xff\0 payload"[..]).at(7).header("trace", "t-1");
    put_aside(&pipeline, vec![sent.clone(), event("a", 8)]).await;
    let receipt = pipeline.semel().get(&pipeline.receipt_key("a-1").unwrap()).await.unwrap();

    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::Requeued { number: 1 });
    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::AlreadyWaiting { number: 1 });
    let waits = keyed(&pipeline, "a-1").await;
    assert_eq!((waits.state, waits.is_waiting, waits.requeue), (EventState::DeadLetter, true, 0));

    let report = consumed(&pipeline, &runs).await;
    assert_eq!((report.requeued, report.ran, report.duplicates, report.delivered), (1, 1, 0, 0));
    assert_eq!(runs.events(), [sent]);
    assert_eq!(pipeline.waiting().await.unwrap(), []);
    let now = keyed(&pipeline, "a-1").await;
    assert_eq!((now.state, now.is_waiting, now.requeue), (EventState::Processed, false, 1));
    assert_eq!(pipeline.semel().get(&pipeline.receipt_key("a-1").unwrap()).await.unwrap(), receipt);
    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::NotDead(EventState::Processed));

    consumed(&pipeline, &runs).await;
    assert_eq!(runs.effects(), 1, "nobody takes it up again");
    let dead = listed(&pipeline, &[EventState::DeadLetter]).await;
    assert_eq!(dead.iter().map(|event| &*event.event).collect::<Vec<_>>(), ["a-8"]);
    assert_eq!(pipeline.statistics().await.unwrap().dead_letters, 1);
}

#[tokio::test(start_paused = true)]
async fn many_consumers_of_a_requeued_event_have_one_effect() {
    let (pipeline, runs) = (pipeline(), Runs::default());
    put_aside(&pipeline, events("a", 40)).await;
    let asks: Vec<_> = (1..=40).map(|number| ask(&format!("a-{number}"))).collect();
    let answers = pipeline.requeue(&asks).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Requeue::Requeued { number: 1 }), "{answers:?}");
    let consumer = || {
        let runs = runs.clone();
        let consumer = Consumer::new(pipeline.clone(), Feed::shared([]).source()).parallel(8);
        let stopper = consumer.stopper();
        let running = consumer.run(move |event, permit| {
            let noted = runs.note(event, &permit);
            async move {
                tokio::time::sleep(Duration::from_millis(700)).await;
                noted.await
            }
        });
        (tokio::spawn(running), stopper)
    };
    let consumers = [consumer(), consumer(), consumer()];
    let ran = || consumers.iter().map(|(_, stopper)| stopper.report().ran).sum::<u64>();
    until("all are processed", || ran() == 40).await;
    for (running, stopper) in consumers {
        stopper.stop();
        running.await.unwrap().unwrap();
    }
    assert_eq!((runs.attempts(), runs.effects()), (vec![1; 40], 40));
    assert_eq!(pipeline.waiting().await.unwrap(), []);
    assert_eq!(pipeline.statistics().await.unwrap().receipts, 40);
}

/// Stops its consumer dead at a step: the thread never goes on, as if the process had been killed there.
struct DiesAt {
    step: usize,
    seen: AtomicUsize,
    died: Arc<AtomicUsize>,
}

impl Watch for DiesAt {
    fn saw(&self, step: &Step<'_>) {
        if matches!(step, Step::Waiting(_)) {
            return;
        }
        if self.seen.fetch_add(1, Ordering::SeqCst) == self.step {
            self.died.fetch_add(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
    }
}

#[tokio::test]
async fn a_consumer_that_dies_at_any_step_of_a_requeue_leaves_one_effect() {
    // Taken up, effect, receipt: behind the last, only the list still names the event.
    for (step, attempts) in [(0, vec![1]), (1, vec![1, 2]), (2, vec![1])] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let pipeline = |store: &Arc<dyn Store>| {
            let semel = Semel::builder_shared(Arc::clone(store)).build().unwrap();
            Pipeline::builder(&semel, "orders").lease(Duration::from_millis(300)).build().unwrap()
        };
        let (own, runs, died) = (pipeline(&store), Runs::default(), Arc::new(AtomicUsize::new(0)));
        put_aside(&own, vec![event("a", 1)]).await;
        requeue(&own, "a-1").await;
        let (theirs, noted, dies_at) = (Arc::clone(&store), runs.clone(), Arc::clone(&died));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let watch = DiesAt { step, seen: AtomicUsize::new(0), died: dies_at };
                let consumer = Consumer::new(pipeline(&theirs), Feed::alone([]).end().source());
                consumer.watch(Arc::new(watch)).run(move |event, permit| noted.note(event, &permit)).await
            })
        });
        until("it died", || died.load(Ordering::SeqCst) == 1).await;
        assert_eq!(own.waiting().await.unwrap().len(), 1, "step {step}: it is still in the list");
        // The one that comes next waits for no lease: it ends, and the one after it finds the lease lapsed.
        for _ in 0..50 {
            consumed(&own, &runs).await;
            if own.waiting().await.unwrap().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!((runs.attempts(), runs.effects()), (attempts, 1), "step {step}");
        assert_eq!(keyed(&own, "a-1").await.state, EventState::Processed, "step {step}");
        assert_eq!(own.waiting().await.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_requeue_counts_its_attempts_and_what_fails_again_can_be_requeued_again() {
    let (pipeline, runs) = (pipeline(), Runs::default());
    put_aside(&pipeline, vec![event("a", 1)]).await;
    requeue(&pipeline, "a-1").await;
    let consumer = Consumer::new(pipeline.clone(), Feed::alone([]).end().source()).attempts_max(3);
    let report = consumer.run(|_, _| async { Err(Failure::Retry("still no luck".into())) }).await.unwrap();
    assert_eq!((report.requeued, report.retries, report.dead_letters), (1, 2, 1));
    let dead = keyed(&pipeline, "a-1").await;
    assert_eq!((dead.state, dead.requeue, dead.attempts), (EventState::DeadLetter, 1, 3));
    let letter = KeptLetter::read(dead.outcome.as_ref().unwrap()).unwrap();
    assert_eq!((letter.error.as_deref(), letter.attempts), (Some("still no luck"), Some(3)));
    let late = RequeueAsk { requeues_before: Some(0), ..ask("a-1") };
    assert_eq!(pipeline.requeue(&[late]).await.unwrap(), [Requeue::Changed]);
    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::Requeued { number: 2 });
    consumed(&pipeline, &runs).await;
    assert_eq!((runs.events(), runs.attempts()), (vec![event("a", 1)], vec![1]));
    assert_eq!(keyed(&pipeline, "a-1").await.requeue, 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_requeued_is_refused_and_nothing_is_written() {
    let pipeline = pipeline();
    let consumer = Consumer::new(pipeline.clone(), Feed::alone(events("a", 3)).end().source());
    let consumer = consumer.dead_letter_bytes_max(0);
    let run = consumer.run(|event, _| async move {
        if event.position.unwrap().get() == 1 { fine() } else { Err(Failure::Dead("no".into())) }
    });
    run.await.unwrap();
    pipeline.record([("old", semel_stream::dead_letter(3, "of version 0.1"))]).await.unwrap();
    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::NotDead(EventState::Processed));
    assert_eq!(requeue(&pipeline, "a-2").await, Requeue::NotKept);
    assert_eq!(requeue(&pipeline, "old").await, Requeue::NotKept);
    assert_eq!(requeue(&pipeline, "nothing").await, Requeue::Unknown);
    assert_eq!(pipeline.waiting().await.unwrap(), []);
    let kept = KeptLetter::read(keyed(&pipeline, "a-3").await.outcome.as_ref().unwrap()).unwrap();
    assert!(matches!(kept.payload, KeptPayload::TooLarge { bytes: 9, .. }), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_running_consumer_finds_a_requeue_within_seconds_and_goes_on_with_its_source() {
    let (pipeline, runs, ledger) = (pipeline(), Runs::default(), Ledger::default());
    put_aside(&pipeline, vec![event("a", 1)]).await;
    let (feed, noted) = (Feed::alone([event("b", 1)]), runs.clone());
    let consumer = Consumer::new(pipeline.clone(), feed.source()).watch(Arc::new(ledger.clone()));
    let stopper = consumer.stopper();
    let running = tokio::spawn(consumer.run(move |event, permit| noted.note(event, &permit)));
    until("the source's is done", || stopper.report().ran == 1).await;
    requeue(&pipeline, "a-1").await;
    let asked_at = tokio::time::Instant::now();
    until("it is taken up", || ledger.count("requeued") == 1).await;
    assert!(asked_at.elapsed() < Duration::from_secs(3), "{:?}", asked_at.elapsed());
    feed.push(event("b", 2));
    until("both are done", || stopper.report().ran == 3).await;
    stopper.stop();
    running.await.unwrap().unwrap();
    assert_eq!(pipeline.waiting().await.unwrap(), [], "written before it ended");
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn every_dead_letter_is_listed_also_without_a_key_and_under_anothers() {
    let (pipeline, runs) = (pipeline(), Runs::default());
    let named = |position: u128, payload: &str| Event::new("a", "same", payload.to_owned()).at(position);
    let log = vec![
        named(1, r#"{"id":1}"#),
        named(2, "{}"),
        named(3, r#"{"id":1,"cents":7}"#),
        named(4, "no JSON"),
        // An event whose key is the place of another.
        named(5, r#"{"id":"a@2"}"#),
    ];
    let read = |policy| {
        let source = Feed::alone(log.clone()).end();
        let consumer = Consumer::new(pipeline.clone(), source.source())
            .key(EventKey::Pointer("/id".into()))
            .on_missing_key(policy)
            .compare_payloads()
            .parallel(1);
        async move {
            let failing = |event: Arc<Event>, _: Permit| async move {
                let is_fine = event.position.unwrap().get() == 1;
                if is_fine { fine() } else { Err(Failure::Dead("no".into())) }
            };
            (consumer.run(failing).await.unwrap(), source)
        }
    };
    let (report, _source) = read(OnMissingKey::DeadLetter).await;
    assert_eq!((report.ran, report.dead_letters), (1, 4));
    let mut dead = listed(&pipeline, &[EventState::DeadLetter]).await;
    dead.sort_by(|one, other| one.event.cmp(&other.event));
    let listed: Vec<_> = dead.iter().map(|event| (&*event.event, event.has_key)).collect();
    assert_eq!(listed, [("\"a@2\"", true), ("a@2", false), ("a@3", false), ("a@4", false)]);
    assert_eq!(pipeline.statistics().await.unwrap().dead_letters, report.dead_letters);

    // Read again, each is known.
    pipeline.rewind("a", None).await.unwrap();
    let (again, _source) = read(OnMissingKey::DeadLetter).await;
    assert_eq!((again.dead_letters, again.duplicates), (0, 5));

    let place = RequeueAsk { event: EventId::Keyless("a@2".into()), requeues_before: Some(0) };
    assert_eq!(
        pipeline.requeue(std::slice::from_ref(&place)).await.unwrap(),
        [Requeue::Requeued { number: 1 }]
    );
    consumed(&pipeline, &runs).await;
    assert_eq!(runs.events(), [named(2, "{}")]);
    assert_eq!(found(&pipeline, &place.event).await.state, EventState::Processed);
    assert_eq!(keyed(&pipeline, "\"a@2\"").await.state, EventState::DeadLetter);
    assert_eq!(pipeline.statistics().await.unwrap().dead_letters, 3);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_of_an_event_without_protection_is_listed_too() {
    let pipeline = pipeline();
    let consumer = Consumer::new(pipeline.clone(), Feed::alone(events("a", 2)).end().source())
        .key(EventKey::Header("missing".into()))
        .on_missing_key(OnMissingKey::Unprotected);
    let report = consumer.run(|_, _| async { Err(Failure::Dead("no".into())) }).await.unwrap();
    assert_eq!(report.dead_letters, 2);
    assert_eq!(pipeline.statistics().await.unwrap().dead_letters, 2);
}

#[tokio::test(start_paused = true)]
async fn a_requeue_that_is_held_is_listed_and_keeps_no_consumer_from_its_end() {
    let semel = Semel::new(super::scene::memory());
    let pipeline = Pipeline::builder(&semel, "orders").lapse(semel::Lapse::Hold).build().unwrap();
    put_aside(&pipeline, vec![event("a", 1)]).await;
    requeue(&pipeline, "a-1").await;
    let dying = Consumer::new(pipeline.clone(), Feed::alone([]).source()).run(|_, _| std::future::pending());
    tokio::time::timeout(Duration::from_secs(5), dying).await.unwrap_err();
    tokio::time::sleep(Duration::from_mins(2)).await;
    let runs = Runs::default();
    consumed(&pipeline, &runs).await;
    assert_eq!(runs.effects(), 0);
    let held = listed(&pipeline, &[EventState::Held]).await;
    assert_eq!(held.iter().map(|event| (&*event.event, event.requeue)).collect::<Vec<_>>(), [("a-1", 1)]);
    assert_eq!(requeue(&pipeline, "a-1").await, Requeue::NotDead(EventState::Held));
    let key = pipeline.run_key(&EventId::Keyed("a-1".into()), 1).unwrap();
    semel.resolve(&key, semel::Resolution::Release { reason: "looked".into() }).await.unwrap();
    consumed(&pipeline, &runs).await;
    assert_eq!((runs.attempts(), pipeline.waiting().await.unwrap().len()), (vec![2], 0));
}
