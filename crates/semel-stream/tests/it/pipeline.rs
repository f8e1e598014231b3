//! Receipts and offsets of a pipeline.

use semel::Semel;
use semel::store::MemoryStore;
use semel_stream::{Commit, Pipeline, Position};

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
