//! Order, under parallelism and retries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel_stream::{Consumer, Event, Failure, Order};
use test_streams::feed::Feed;

use super::scene::{event, fine, pipeline};

/// In which order handlers began and ended, by what must be in order.
async fn order_of(
    order: Order,
    lane: impl Fn(&Event) -> String + Send + Sync + 'static,
) -> BTreeMap<String, Vec<u128>> {
    let keyed = |position: u128| {
        let mut event = event(if position.is_multiple_of(2) { "even" } else { "odd" }, position);
        event.partition_key = Some(format!("customer-{}", position % 5).into());
        event
    };
    let feed = Feed::alone((1..=200).map(keyed)).end();
    let ended: Arc<Mutex<BTreeMap<String, Vec<u128>>>> = Arc::default();
    let (noted, lane) = (Arc::clone(&ended), Arc::new(lane));
    let consumer = Consumer::new(pipeline(), feed.source()).parallel(32).order(order);
    let report = consumer
        .run(move |event, permit| {
            let (noted, lane) = (Arc::clone(&noted), Arc::clone(&lane));
            async move {
                let position = event.position.unwrap().get();
                let mut dice = StdRng::seed_from_u64(
                    u64::try_from(position).unwrap() + u64::from(permit.attempt()) * 1_000,
                );
                tokio::time::sleep(Duration::from_millis(dice.random_range(0..20))).await;
                if permit.attempt() < 3 && position % 7 == 0 {
                    return Err(Failure::Retry("not yet".into()));
                }
                noted.lock().unwrap().entry(lane(&event)).or_default().push(position);
                fine()
            }
        })
        .await
        .unwrap();
    assert_eq!((report.ran, report.retries), (200, 2 * 28));
    std::mem::take(&mut ended.lock().unwrap())
}

fn assert_in_order(ended: &BTreeMap<String, Vec<u128>>, lanes: usize) {
    assert_eq!(ended.len(), lanes);
    for (lane, positions) in ended {
        assert!(positions.is_sorted(), "{lane}: {positions:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_with_the_same_partition_key_end_in_their_order() {
    let lane = |event: &Event| format!("{} {}", event.stream, event.partition_key.as_deref().unwrap());
    assert_in_order(&order_of(Order::PartitionKey, lane).await, 10);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_stream_end_in_their_order() {
    assert_in_order(&order_of(Order::Stream, |event| event.stream.to_string()).await, 2);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_lane_of_ones_own_end_in_their_order() {
    let lane = |event: &Event| format!("{} {}", event.stream, event.position.unwrap().get() % 3);
    let function = Order::By(Arc::new(move |event| Some(lane(event))));
    assert_in_order(&order_of(function, lane).await, 6);
}

#[tokio::test(start_paused = true)]
async fn without_an_order_the_same_check_finds_events_out_of_it() {
    let ended = order_of(Order::Any, |event| event.stream.to_string()).await;
    assert!(ended.values().any(|positions| !positions.is_sorted()));
}
