//! Events that cannot be processed are put aside, and the offset moves on.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::{Error, ErrorKind};
use semel_stream::source::Pending;
use semel_stream::{Checkpoint, Consumer, DeadLetter, DeadLetters, Event, Failure, Pipeline, Receipt};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, event, events, fine, pipeline};

/// A place that keeps what it is given.
#[derive(Clone, Default)]
struct Kept {
    letters: Arc<Mutex<Vec<DeadLetter>>>,
    refusals: Arc<AtomicU32>,
}

impl DeadLetters for Kept {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        Box::pin(async move {
            if self.refusals.load(Ordering::SeqCst) > 0 {
                self.refusals.fetch_sub(1, Ordering::SeqCst);
                return Err(Error::new(ErrorKind::Unavailable, "no room here; ask again"));
            }
            self.letters.lock().unwrap().push(letter);
            Ok(())
        })
    }
}

impl Kept {
    fn all(&self) -> Vec<(String, u32, String)> {
        let letters = self.letters.lock().unwrap();
        let read = |letter: &DeadLetter| {
            (letter.key.as_deref().unwrap_or("none").to_owned(), letter.attempts, letter.error.clone())
        };
        letters.iter().map(read).collect()
    }
}

async fn receipt(pipeline: &Pipeline, key: &str) -> Option<Receipt> {
    let record = pipeline.semel().get(&pipeline.receipt_key(key).unwrap()).await.unwrap();
    Receipt::read(&record?)
}

#[tokio::test(start_paused = true)]
async fn an_event_that_fails_again_and_again_is_put_aside_with_its_attempts_and_last_error() {
    let (pipeline, feed, kept, ledger) =
        (pipeline(), Feed::alone(events("a", 5)).end(), Kept::default(), Ledger::default());
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .attempts_max(4)
        .dead_letters(kept.clone())
        .watch(Arc::new(ledger.clone()));
    let report = consumer
        .run(|event, permit| async move {
            match event.position.unwrap().get() {
                3 => Err(Failure::Retry(format!("no luck the {}. time", permit.attempt()))),
                _ => fine(),
            }
        })
        .await
        .unwrap();
    assert_eq!(kept.all(), [("a-3".to_owned(), 4, "no luck the 4. time".to_owned())]);
    assert_eq!((report.ran, report.retries, report.dead_letters), (4, 3, 1));
    assert_eq!(report.offsets["a"].get(), 5);
    let receipt = receipt(&pipeline, "a-3").await.unwrap();
    assert!(receipt.is_dead_letter() && receipt.attempts == 4);
    let details = receipt.outcome.details_json().unwrap();
    assert!(details.contains("no luck the 4. time") && details.contains('4'), "{details}");
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_will_never_work_is_put_aside_at_once() {
    let (feed, kept) = (Feed::alone(events("a", 2)).end(), Kept::default());
    let consumer = Consumer::new(pipeline(), feed.source()).dead_letters(kept.clone());
    let report = consumer.run(|_, _| async { Err(Failure::Dead("not an order".into())) }).await.unwrap();
    assert_eq!((report.dead_letters, report.retries), (2, 0));
    assert!(kept.all().iter().all(|(_, attempts, error)| *attempts == 1 && error == "not an order"));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_killed_its_consumers_is_put_aside_without_being_run() {
    let (pipeline, kept) = (pipeline(), Kept::default());
    for _ in 0..3 {
        // A consumer that dies while it processes the event: its future is dropped, and its lease lapses.
        let consumer = Consumer::new(pipeline.clone(), Feed::alone([event("a", 1)]).source());
        let dying = consumer.run(|_, _| std::future::pending());
        tokio::time::timeout(Duration::from_mins(2), dying).await.unwrap_err();
        tokio::time::sleep(Duration::from_mins(2)).await;
    }
    let feed = Feed::alone(events("a", 2)).end();
    let consumer = Consumer::new(pipeline.clone(), feed.source()).attempts_max(3).dead_letters(kept.clone());
    let report = consumer
        .run(|event: Arc<Event>, _| async move {
            assert_eq!(event.position.unwrap().get(), 2, "the first one kills");
            fine()
        })
        .await
        .unwrap();
    assert_eq!((report.ran, report.dead_letters), (1, 1));
    let all = kept.all();
    assert_eq!((all[0].0.as_str(), all[0].1), ("a-1", 3));
    assert!(all[0].2.contains("3 attempts did not end"), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_does_not_run_again_because_the_place_for_dead_letters_is_away() {
    let (feed, kept, runs) =
        (Feed::alone(events("a", 1)).end(), Kept::default(), Arc::new(AtomicU32::new(0)));
    kept.refusals.store(20, Ordering::SeqCst);
    let consumer = Consumer::new(pipeline(), feed.source()).dead_letters(kept.clone());
    let counted = Arc::clone(&runs);
    // The pauses add up to several leases: only a permit that is kept alive keeps others from running.
    let report = consumer
        .run(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Err(Failure::Dead("not an order".into())) }
        })
        .await
        .unwrap();
    assert_eq!((report.dead_letters, runs.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(kept.all(), [("a-1".to_owned(), 1, "not an order".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_not_settled_before_its_letter_is_kept() {
    let (pipeline, feed, kept, ledger) =
        (pipeline(), Feed::shared(events("a", 2)).end(), Kept::default(), Ledger::default());
    kept.refusals.store(5, Ordering::SeqCst);
    let consumer = Consumer::new(pipeline, feed.source())
        .attempts_max(1)
        .backoff(QUICK)
        .dead_letters(kept.clone())
        .watch(Arc::new(ledger.clone()));
    let report = consumer.run(|_, _| async { Err(Failure::Retry("no".into())) }).await.unwrap();
    assert_eq!((report.dead_letters, kept.all().len(), ledger.count("waiting")), (2, 2, 5));
    assert_eq!(feed.acknowledged().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_payload_under_the_same_key_is_put_aside_if_payloads_are_compared() {
    let other = Event::new("a", "a-1", "another payload").at(2);
    let log = || Feed::alone([event("a", 1), other.clone(), event("a", 3)]).end();
    let kept = Kept::default();
    let consumer = Consumer::new(pipeline(), log().source()).compare_payloads().dead_letters(kept.clone());
    let report = consumer.run(|_, _| async { fine() }).await.unwrap();
    assert_eq!((report.ran, report.dead_letters, report.duplicates), (2, 1, 0));
    assert_eq!(report.offsets["a"].get(), 3);
    assert_eq!(kept.all()[0].0, "a-1");
    let report = Consumer::new(pipeline(), log().source()).run(|_, _| async { fine() }).await.unwrap();
    assert_eq!((report.ran, report.dead_letters, report.duplicates), (2, 0, 1), "they are not compared");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_ends_nothing_but_itself_and_the_lease_decides() {
    let (pipeline, feed, ledger) = (pipeline(), Feed::alone(events("a", 20)).end(), Ledger::default());
    let has_panicked = Arc::new(AtomicBool::new(false));
    let started_at = tokio::time::Instant::now();
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .checkpoint(Checkpoint::EachEvent)
        .watch(Arc::new(ledger.clone()));
    let report = consumer
        .run(move |event, permit| {
            let has_panicked = Arc::clone(&has_panicked);
            async move {
                let is_fine = event.position.unwrap().get() != 7 || has_panicked.swap(true, Ordering::SeqCst);
                assert!(is_fine, "the seventh event panics, once");
                assert_eq!(permit.attempt(), if event.position.unwrap().get() == 7 { 2 } else { 1 });
                fine()
            }
        })
        .await
        .unwrap();
    assert_eq!((report.ran, report.retries, ledger.count("failed")), (20, 1, 1));
    assert!(started_at.elapsed() >= semel::LEASE_DEFAULT, "its permit was not released");
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
    assert!(ledger.place_of("offset 6").unwrap() < ledger.place_of("offset 20").unwrap());
    assert_eq!(receipt(&pipeline, "a-7").await.unwrap().attempts, 2);
}
