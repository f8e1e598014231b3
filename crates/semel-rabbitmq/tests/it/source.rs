//! What the source keeps.

use std::time::Duration;

use lapin::BasicProperties;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use semel::ErrorKind;
use semel_rabbitmq::{Queue as Kind, RabbitMqSource};
use semel_stream::source::{Reads, Source};
use semel_stream::{EventKey, KeyFault};
use test_services::rabbitmq_url;
use test_streams::consuming;
use test_streams::promises::{self, Broker, id, ids, momentary, tags, take};
use test_streams::way::Way;

use super::broker::{Killable, Queue, with_id};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_rabbitmq_has_its_id_headers_and_routing_key() {
    let queue = Queue::new(Kind::Durable).await;
    let mut headers = FieldTable::default();
    headers.insert("tenant".into(), AMQPValue::LongString("a".into()));
    headers.insert("size".into(), AMQPValue::LongInt(-3));
    headers.insert("nested".into(), AMQPValue::FieldTable(FieldTable::default()));
    let channel = queue.channel().await.unwrap();
    queue.publish_with(&channel, with_id("order-1").with_headers(headers)).await;
    queue.publish_with(&channel, BasicProperties::default()).await;
    let mut source = queue.source().build();
    assert_eq!(source.reads(), Reads::Shared);
    let events: Vec<_> = take(&mut source, 2).await.into_iter().map(|delivery| delivery.event).collect();
    assert_eq!(*events[0].stream, *queue.name);
    assert_eq!(events[0].id.as_deref(), Some("order-1"));
    assert_eq!(events[0].position, None);
    assert_eq!(events[0].partition_key.as_deref(), Some(&*queue.name));
    assert_eq!(events[0].payload, "{}");
    assert_eq!(events[0].deliveries, Some(1));
    assert_eq!(events[0].header_value("tenant"), Some("a"));
    assert_eq!(events[0].header_value("size"), Some("-3"));
    assert_eq!(events[0].header_value("nested"), None);
    assert_eq!(events[1].id, None);
    assert_eq!(
        EventKey::Broker.of(&events[1]),
        Err(KeyFault::Missing),
        "the policy for events without a key decides"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_delivers_again_what_was_not_acknowledged_before_a_cut() {
    let queue = Queue::new(Kind::Durable).await;
    let way = Way::to(queue.port()).await;
    promises::what_was_not_acknowledged_comes_again(&queue, &way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_of_a_dead_line_to_rabbitmq_count_for_nothing() {
    let queue = Queue::new(Kind::Durable).await;
    let way = Way::to(queue.port()).await;
    promises::tags_of_a_dead_line_count_for_nothing(&queue, &way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_brings_back_what_was_given_back_after_its_delay() {
    promises::what_is_given_back_comes_after_its_delay(&Queue::new(Kind::Durable).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_from_rabbitmq_that_is_dropped_loses_nothing() {
    promises::a_fetch_that_is_dropped_loses_nothing(&Queue::new(Kind::Durable).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_rabbitmq_loses_nothing_that_was_not_acknowledged() {
    let mut broker = Killable::start().await;
    promises::a_crash_loses_nothing_that_was_not_acknowledged(&mut broker, Killable::crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_of_a_killed_rabbitmq_make_one_effect_each() {
    let mut broker = Killable::start().await;
    consuming::two_consumers_and_a_crash_make_one_effect_each(&mut broker, Killable::crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quorum_queue_counts_how_often_an_event_was_delivered() {
    let queue = Queue::new(Kind::Quorum).await;
    queue.publish("again").await;
    let mut source = queue.source().open().await.unwrap();
    for deliveries in 1..=4 {
        let taken = take(&mut source, 1).await;
        assert_eq!(taken[0].event.deliveries, Some(deliveries));
        source.give_back(&tags(&taken), Duration::ZERO).await.unwrap();
    }
    let taken = take(&mut source, 1).await;
    source.acknowledge(&tags(&taken)).await.unwrap();
    assert!(momentary(&mut source).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_are_settled_in_any_order_are_all_settled_once() {
    let queue = Queue::new(Kind::Durable).await;
    let published = queue.publish_many(300).await;
    let mut source = queue.source().prefetch(40).open().await.unwrap();
    let mut acknowledged = Vec::new();
    let mut in_work = Vec::new();
    while acknowledged.len() < published.len() {
        if let Some(count) = 20_usize.checked_sub(in_work.len()).filter(|count| *count > 0)
            && let Ok(taken) = tokio::time::timeout(Duration::from_millis(100), take(&mut source, 1)).await
        {
            in_work.extend(taken);
            if count > 1 && rand::random() {
                continue;
            }
        }
        let (mut settled, mut given_back) = (Vec::new(), Vec::new());
        for delivery in std::mem::take(&mut in_work) {
            match rand::random_range(0..10) {
                0..4 => settled.push(delivery),
                4 => given_back.push(delivery),
                _ => in_work.push(delivery),
            }
        }
        source.give_back(&tags(&given_back), Duration::from_millis(rand::random_range(0..20))).await.unwrap();
        source.acknowledge(&tags(&settled)).await.unwrap();
        acknowledged.extend(settled.iter().map(id));
    }
    acknowledged.sort();
    assert_eq!(acknowledged, published.into_iter().collect::<Vec<_>>(), "an acknowledged event came again");
    assert_eq!(source.lag().await.unwrap(), Some(0));
    source.close().await.unwrap();
    // Control: whatever the broker thinks is not settled would come to the next reader.
    assert!(momentary(&mut queue.source().build()).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_events_come_than_the_prefetch_allows() {
    let queue = Queue::new(Kind::Durable).await;
    let published = queue.publish_many(5).await;
    let mut source = queue.source().prefetch(2).build();
    let held = momentary(&mut source).await;
    assert_eq!(held.len(), 2);
    assert_eq!(source.lag().await.unwrap(), Some(3));
    assert_eq!(source.floor().await.unwrap(), []);
    source.acknowledge(&tags(&held)).await.unwrap();
    let more = take(&mut source, 2).await;
    // What a reader holds goes back when it says goodbye.
    source.close().await.unwrap();
    assert!(matches!(source.fetch(1).await.unwrap(), semel_stream::source::Fetched::End));
    let mut other = queue.source().build();
    let rest = take(&mut other, 3).await;
    assert!(ids(&more).is_subset(&ids(&rest)));
    assert_eq!(ids(&held).union(&ids(&rest)).cloned().collect::<std::collections::BTreeSet<_>>(), published);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_not_as_it_was_asked_for_is_refused() {
    let url = rabbitmq_url().unwrap();
    let error = RabbitMqSource::connect(&url, "no-such-queue").open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert!(error.to_string().contains("`no-such-queue`"), "{error}");
    let queue = Queue::new(Kind::Durable).await;
    let error = queue.source().queue(Kind::Quorum).open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    let error = RabbitMqSource::connect("http://127.0.0.1", "q").open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    let error = RabbitMqSource::connect("amqp://127.0.0.1:1", "q").open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let stranger = url.replace("guest:guest", "guest:wrong");
    let error = RabbitMqSource::connect(&stranger, &queue.name).open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    // A queue that is there may be read whatever it is.
    let exclusive = QueueDeclareOptions { auto_delete: true, ..QueueDeclareOptions::default() };
    let channel = queue.channel().await.unwrap();
    let name = format!("{}-other", queue.name);
    channel.queue_declare(name.as_str().into(), exclusive, FieldTable::default()).await.unwrap();
    RabbitMqSource::connect(&url, &name).open().await.unwrap();
}
