//! Receipts and offsets of a pipeline.

use semel::store::{Loaded, MemoryStore, Reply, Store, SwapReplies, SwapReply, Swaps};
use semel::{Error, ErrorKind, Key, Outcome, RecordId, RecordedOnce, Semel};
use semel_stream::{Commit, Event, EventKey, Pipeline, Position, Seen};

/// A store in memory in which one record cannot be read.
struct Damaged {
    store: MemoryStore,
    id: RecordId,
}

fn damage() -> Error {
    Error::new(ErrorKind::Corrupt, "the record cannot be read; restore it")
}

impl Store for Damaged {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let is_damaged: Vec<_> = batch.iter().map(|swap| swap.id() == self.id).collect();
        let swapping = self.store.swap(batch);
        Reply::later(async move {
            Ok(swapping.await?.map(|replies| {
                let each = replies.into_iter().zip(is_damaged);
                each.map(|(reply, is)| if is { SwapReply::Damaged(damage()) } else { reply }).collect()
            }))
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let is_damaged: Vec<_> = ids.iter().map(|id| *id == self.id).collect();
        let loading = self.store.load(ids);
        Reply::later(async move {
            Ok(loading.await?.map(|found| {
                let each = found.into_iter().zip(is_damaged);
                each.map(|(found, is)| if is { Err(damage()) } else { found }).collect()
            }))
        })
    }

    semel_testkit::delegate!(store: sweep, scan);
}

/// A pipeline whose receipt of the event `b` cannot be read.
fn damaged() -> Pipeline {
    let id = Key::scoped(["orders"], "receipt", "b").unwrap().id();
    let semel = Semel::new(Damaged { store: MemoryStore::new(), id });
    Pipeline::new(&semel, "orders").unwrap()
}

#[tokio::test]
async fn a_receipt_that_cannot_be_read_fails_alone() {
    let pipeline = damaged();
    let events = ["a", "b", "c"].map(|event| (event, Outcome::success("fine")));
    let recorded = pipeline.record(events).await.unwrap();
    assert!(matches!(&recorded[..], [Ok(RecordedOnce::Recorded(_)), Err(_), Ok(RecordedOnce::Recorded(_))]));
    let unseen = pipeline.unseen(&["a", "b", "c", "d"]).await.unwrap();
    let unseen: Vec<_> = unseen.into_iter().map(|answer| answer.map_err(|error| error.kind())).collect();
    assert_eq!(unseen, [Ok(false), Err(ErrorKind::Corrupt), Ok(false), Ok(true)]);
}

#[tokio::test]
async fn a_batch_with_an_event_whose_receipt_cannot_be_read_processes_the_others() {
    let events = ["a", "b", "c"].map(|id| Event::new("topic/0", id, id));
    let pipeline = damaged();
    let handler = async |_: &Event, _| Ok(Outcome::success("fine"));
    let processed = pipeline.process(&events, &EventKey::default(), handler).await.unwrap();
    assert_eq!((processed.ran(), processed.contiguous()), (2, 1));
    assert!(matches!(&processed.events[1], Seen::Unknown(error) if error.kind() == ErrorKind::Corrupt));
}

#[tokio::test]
async fn a_reader_that_was_replaced_can_commit_no_more() {
    let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "orders").unwrap();
    let first = pipeline.take("topic/0").await.unwrap();
    assert!(matches!(first.commit(Position::new(4), Some("e4")).await.unwrap(), Commit::Committed(_)));
    let second = pipeline.take("topic/0").await.unwrap();
    assert_eq!(second.started_at().position, Some(Position::new(4)));
    assert!(matches!(first.commit(Position::new(5), None).await.unwrap(), Commit::Fenced(_)));
    assert!(matches!(second.commit(Position::new(5), None).await.unwrap(), Commit::Committed(_)));
    assert!(matches!(second.commit(Position::new(3), None).await.unwrap(), Commit::Behind(_)));
}
