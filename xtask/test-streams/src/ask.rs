//! A source asked for what it should have, within bounds.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel_stream::source::{Delivery, Fetched, Source, Tag};

/// Longer than anything takes here, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// Long enough for what should not come to come.
pub const MOMENT: Duration = Duration::from_millis(300);

/// What the source says next.
pub async fn news(source: &mut impl Source, most: usize) -> Result<Fetched> {
    tokio::time::timeout(PATIENCE, source.fetch(most)).await.expect("the source said nothing")
}

/// This many deliveries, however many batches they take; errors are waited out.
pub async fn deliveries(source: &mut impl Source, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    let fetching = async {
        while all.len() < count {
            match source.fetch(count - all.len()).await {
                Ok(Fetched::Deliveries(some)) => all.extend(some),
                Ok(other) => panic!("expected deliveries, got {other:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, fetching).await.expect("not all was delivered");
    all
}

/// The streams that are assigned next; errors are waited out.
pub async fn assigned(source: &mut impl Source) -> Vec<Arc<str>> {
    match news(source, 1).await.unwrap() {
        Fetched::Assigned(streams) => streams,
        other => panic!("expected an assignment, got {other:?}"),
    }
}

/// Nothing comes for a moment.
pub async fn silence(source: &mut impl Source) {
    if let Ok(news) = tokio::time::timeout(MOMENT, source.fetch(9)).await {
        panic!("expected nothing, got {news:?}");
    }
}

/// Waits until it is so.
pub async fn eventually(is_so: impl AsyncFn() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it never was so");
}

/// What the events say.
pub fn payloads(deliveries: &[Delivery]) -> Vec<String> {
    let text = |delivery: &Delivery| String::from_utf8(delivery.event.payload.to_vec()).unwrap();
    deliveries.iter().map(text).collect()
}

/// The broker's ids.
pub fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| delivery.event.id.as_deref().unwrap().to_owned()).collect()
}

/// The tags.
pub fn tags(deliveries: &[Delivery]) -> Vec<Tag> {
    deliveries.iter().map(|delivery| delivery.tag).collect()
}
