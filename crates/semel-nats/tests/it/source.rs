//! What the source keeps.

use std::time::Duration;

use async_nats::jetstream::consumer;
use semel::ErrorKind;
use semel_nats::NatsSource;
use semel_stream::source::{Reads, Source};
use semel_stream::{EventKey, Position};
use test_streams::consuming;
use test_streams::promises::{self, Broker, id, ids, momentary, tags, take};
use test_streams::way::Way;
use tokio::time::timeout;

use super::broker::{Killable, Stream};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_jetstream_has_its_id_headers_position_and_subject() {
    let stream = Stream::new().await;
    let context = stream.context().await;
    let headers = [("Nats-Msg-Id", "order-1"), ("Tenant", "a"), ("Tenant", "b")];
    stream.publish_with(&context, "orders", &headers).await;
    stream.publish_with(&context, "refunds", &[]).await;
    let mut source = stream.source();
    assert_eq!(source.reads(), Reads::Shared);
    let events: Vec<_> = take(&mut source, 2).await.into_iter().map(|delivery| delivery.event).collect();
    assert_eq!(*events[0].stream, *stream.name);
    assert_eq!(events[0].id.as_deref(), Some("order-1"));
    assert_eq!(events[0].position, Some(Position::new(1)));
    assert_eq!(events[0].partition_key.as_deref(), Some(&*format!("{}.orders", stream.name)));
    assert_eq!(events[0].payload, "{}");
    assert_eq!(events[0].deliveries, Some(1));
    assert_eq!(events[0].header_value("tenant"), Some("a"));
    assert_eq!(events[0].headers.iter().filter(|header| &*header.name == "Tenant").count(), 2);
    assert_eq!(EventKey::Broker.of(&events[0]).unwrap(), "order-1");
    assert_eq!(events[1].id.as_deref(), Some(&*format!("{}/2", stream.name)));
}

#[tokio::test(flavor = "multi_thread")]
async fn jetstream_delivers_again_what_was_not_acknowledged_before_a_cut() {
    let stream = Stream::new().await;
    let way = Way::to(stream.port()).await;
    promises::what_was_not_acknowledged_comes_again(&stream, &way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_of_a_dead_line_to_jetstream_count_for_nothing() {
    let stream = Stream::new().await;
    let way = Way::to(stream.port()).await;
    promises::tags_of_a_dead_line_count_for_nothing(&stream, &way).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jetstream_brings_back_what_was_given_back_after_its_delay() {
    promises::what_is_given_back_comes_after_its_delay(&Stream::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_from_jetstream_that_is_dropped_loses_nothing() {
    promises::a_fetch_that_is_dropped_loses_nothing(&Stream::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_nats_loses_nothing_that_was_not_acknowledged() {
    let mut broker = Killable::start().await;
    promises::a_crash_loses_nothing_that_was_not_acknowledged(&mut broker, Killable::crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_of_a_killed_nats_make_one_effect_each() {
    let mut broker = Killable::start().await;
    consuming::two_consumers_and_a_crash_make_one_effect_each(&mut broker, Killable::crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_floor_rises_only_over_what_all_readers_acknowledged() {
    let stream = Stream::new().await;
    stream.publish_many(5).await;
    let (mut one, mut other) = (stream.source(), stream.source());
    assert_eq!(one.lag().await.unwrap(), Some(5));
    let first = take(&mut one, 2).await;
    let second = take(&mut other, 2).await;
    assert_eq!(one.lag().await.unwrap(), Some(1));
    one.acknowledge(&tags(&first[1..])).await.unwrap();
    other.acknowledge(&tags(&second)).await.unwrap();
    assert_eq!(one.floor().await.unwrap(), [], "it passed an event in work");
    one.acknowledge(&tags(&first[..1])).await.unwrap();
    let floor = other.floor().await.unwrap();
    assert_eq!(floor, [(stream.name.as_str().into(), Position::new(4))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_in_work_is_not_delivered_to_others_while_its_reader_says_so() {
    let stream = Stream::new().await;
    stream.publish("slow").await;
    let source =
        || NatsSource::connect(&stream.url, &stream.name, "reader").ack_wait(Duration::from_millis(500));
    let mut patient = source().in_progress_for(Duration::from_mins(1)).build();
    let mut other = source().build();
    let slow = take(&mut patient, 1).await;
    assert!(timeout(Duration::from_secs(2), other.fetch(1)).await.is_err(), "it came although it is in work");
    patient.acknowledge(&tags(&slow)).await.unwrap();
    // Control: of a reader that says nothing, it comes.
    stream.publish("silent").await;
    let mut silent = source().build();
    drop(other);
    let taken = take(&mut silent, 1).await;
    let again = take(&mut silent, 1).await;
    assert_eq!(ids(&taken), ids(&again));
    // And of one that says so for too long.
    let mut stuck = source().in_progress_for(Duration::from_millis(700)).build();
    silent.acknowledge(&tags(&again)).await.unwrap();
    drop(silent);
    stream.publish("stuck").await;
    take(&mut stuck, 1).await;
    assert_eq!(take(&mut stuck, 1).await[0].event.deliveries, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_handed_out_goes_back_at_the_farewell() {
    let stream = Stream::new().await;
    let mut source = stream.source();
    // Asks for eight, and takes what is there first.
    let (_, taken) = tokio::join!(stream.publish_many(8), take(&mut source, 1));
    source.acknowledge(&tags(&taken)).await.unwrap();
    promises::until(async || {
        source.lag().await.unwrap() == Some(0) || source.lag().await.unwrap() == Some(7)
    })
    .await;
    source.close().await.unwrap();
    assert!(matches!(source.fetch(1).await.unwrap(), semel_stream::source::Fetched::End));
    // Sooner than an acknowledgement is overdue.
    let mut other = stream.source();
    let rest = timeout(Duration::from_secs(10), take(&mut other, 7)).await.unwrap();
    assert!(!ids(&rest).contains(&id(&taken[0])));
    other.acknowledge(&tags(&rest)).await.unwrap();
    assert!(momentary(&mut other).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_cannot_keep_the_contract_is_refused() {
    let stream = Stream::new().await;
    let refused = async |source: semel_nats::NatsBuilder| source.open().await.err().unwrap();
    let error = refused(NatsSource::connect(&stream.url, "no-such-stream", "reader")).await;
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert!(error.to_string().contains("`no-such-stream`"), "{error}");
    let of_stream = stream.context().await.get_stream(&stream.name).await.unwrap();
    let careless = consumer::pull::Config {
        durable_name: Some("careless".to_owned()),
        ack_policy: consumer::AckPolicy::All,
        ..consumer::pull::Config::default()
    };
    of_stream.create_consumer(careless).await.unwrap();
    let error = refused(NatsSource::connect(&stream.url, &stream.name, "careless")).await;
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    let all = NatsSource::connect(&stream.url, &stream.name, "all").open().await.unwrap();
    drop(all);
    let orders = format!("{}.orders", stream.name);
    let error = refused(NatsSource::connect(&stream.url, &stream.name, "all").filter(&orders)).await;
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    let error = refused(NatsSource::connect("nats://127.0.0.1:1", &stream.name, "reader")).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_brings_only_the_subjects_that_match() {
    let stream = Stream::new().await;
    let context = stream.context().await;
    for subject in ["orders.a", "refunds.a", "orders.b"] {
        stream.publish_with(&context, subject, &[]).await;
    }
    let filter = format!("{}.orders.*", stream.name);
    let mut source =
        NatsSource::connect(&stream.url, &stream.name, "orders").filter(&filter).open().await.unwrap();
    let taken = take(&mut source, 2).await;
    let positions: Vec<_> = taken.iter().filter_map(|delivery| delivery.event.position).collect();
    assert_eq!(positions, [Position::new(1), Position::new(3)]);
    assert!(momentary(&mut source).await.is_empty());
}
