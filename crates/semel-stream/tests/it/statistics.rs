//! A pipeline's events, page by page and in numbers.

use semel::store::MemoryStore;
use semel::{Decision, Lapse, Outcome, Semel};
use semel_stream::{
    EventRecord, EventState, Pipeline, Position, ReceiptFilter, ReceiptsAfter, Statistics, dead_letter,
};

/// Three processed, one put aside, one running, one released, one held.
async fn fill(pipeline: &Pipeline) {
    let events = ["a", "b", "c"].map(|event| (event, Outcome::success("fine")));
    pipeline.record(events).await.unwrap();
    pipeline.record([("dead", dead_letter(3, "too large"))]).await.unwrap();
    let run = async |event: &str| {
        let decision = pipeline.claim(event).await.unwrap();
        let Decision::Run(permit) = decision else { panic!("was not told to run but {}", decision.as_str()) };
        permit
    };
    run("running").await;
    run("released").await.release("try later").await.unwrap();
    run("held").await.hold("who knows").await.unwrap();
}

async fn all(pipeline: &Pipeline, filter: &ReceiptFilter, limit: usize) -> Vec<EventRecord> {
    let (mut events, mut after) = (Vec::new(), None);
    loop {
        let page = pipeline.receipts(filter, ReceiptsAfter { after, limit }).await.unwrap();
        assert!(page.events.len() <= limit);
        events.extend(page.events);
        after = page.next;
        if after.is_none() {
            events.sort_by(|one, other| one.event.cmp(&other.event));
            return events;
        }
    }
}

#[tokio::test]
async fn every_event_is_counted_once_and_no_other_pipelines_is() {
    let semel = Semel::new(MemoryStore::new());
    let pipeline = Pipeline::new(&semel, "orders").unwrap();
    fill(&pipeline).await;
    pipeline.take("topic/0").await.unwrap().commit(Position::new(7), Some("c")).await.unwrap();
    for stranger in [
        Pipeline::new(&semel, "invoices").unwrap(),
        // A tenant that is called like the pipeline.
        Pipeline::builder(&semel, "eu").scope(["orders"]).build().unwrap(),
    ] {
        fill(&stranger).await;
        stranger.take("topic/1").await.unwrap();
    }
    let statistics = pipeline.statistics().await.unwrap();
    let streams: Vec<_> = statistics.offsets.iter().map(|offset| &*offset.stream).collect();
    assert_eq!(streams, ["topic/0"]);
    let expected = Statistics {
        receipts: 3,
        dead_letters: 1,
        running: 1,
        held: 1,
        released: 1,
        duplicates: 0,
        offsets: statistics.offsets.clone(),
    };
    assert_eq!(statistics, expected);
}

#[tokio::test]
async fn pages_of_any_size_hold_the_same_events() {
    let pipeline = Pipeline::builder(&Semel::new(MemoryStore::new()), "orders").lapse(Lapse::Hold);
    let pipeline = pipeline.build().unwrap();
    fill(&pipeline).await;
    let whole = all(&pipeline, &ReceiptFilter::default(), 100).await;
    assert_eq!(whole.len(), 7);
    for limit in [1, 2, 6, 7] {
        assert_eq!(all(&pipeline, &ReceiptFilter::default(), limit).await, whole, "{limit} at a time");
    }
}

#[tokio::test]
async fn a_filter_leaves_what_was_asked_for_and_nothing_else() {
    let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "orders").unwrap();
    fill(&pipeline).await;
    for (state, events) in [
        (EventState::Processed, vec!["a", "b", "c"]),
        (EventState::DeadLetter, vec!["dead"]),
        (EventState::Running, vec!["running"]),
        (EventState::Released, vec!["released"]),
        (EventState::Held, vec!["held"]),
    ] {
        let found = all(&pipeline, &ReceiptFilter { states: vec![state], event: None }, 3).await;
        assert_eq!(found.iter().map(|event| &*event.event).collect::<Vec<_>>(), events);
    }
    let one = ReceiptFilter { states: Vec::new(), event: Some("held".into()) };
    let found = all(&pipeline, &one, 10).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].state, found[0].who_or_why.as_deref()), (EventState::Held, Some("who knows")));
}
