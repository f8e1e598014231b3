//! Kafka, on the brokers that librdkafka itself imitates: they join groups, rebalance, keep records and offsets, and can
//! be taken down. What they do not have: retention, compaction, transactions, and Kafka's own mistakes.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{DefaultProducerContext, FutureProducer, FutureRecord};
use rdkafka::{Offset, TopicPartitionList};
use semel::ErrorKind;
use semel_kafka::KafkaSource;
use semel_stream::Position;
use semel_stream::source::{Delivery, Fetched, Reads, Source};
use test_streams::ask::{assigned, deliveries, ids, news, payloads, silence, tags};

pub(crate) const TOPIC: &str = "orders";
const GROUP: &str = "billing";

type Cluster = MockCluster<'static, DefaultProducerContext>;

pub(crate) fn cluster(partitions: i32) -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, partitions, 1).unwrap();
    cluster
}

/// Writes `{"n":…}` for these numbers into a partition.
pub(crate) async fn produce(cluster: &Cluster, partition: i32, numbers: std::ops::RangeInclusive<u32>) {
    let mut config = ClientConfig::new();
    let producer: FutureProducer =
        config.set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    for number in numbers {
        let payload = format!("{{\"n\":{number}}}");
        let headers = OwnedHeaders::new().insert(Header { key: "Trace", value: Some("t-1") });
        let key = format!("customer-{partition}");
        let record =
            FutureRecord::to(TOPIC).partition(partition).key(&key).payload(&payload).headers(headers);
        producer.send(record, Duration::from_secs(30)).await.unwrap();
    }
}

pub(crate) fn source(cluster: &Cluster) -> KafkaSource {
    let builder = KafkaSource::builder(&cluster.bootstrap_servers(), &[TOPIC], GROUP);
    builder.setting("session.timeout.ms", "6000").setting("heartbeat.interval.ms", "200").connect().unwrap()
}

async fn started(cluster: &Cluster, after: Option<u128>) -> KafkaSource {
    let mut source = source(cluster);
    let streams = assigned(&mut source).await;
    assert_eq!(names(&streams), ["orders/0"]);
    source.start(&streams[0], after.map(Position::new)).await.unwrap();
    source
}

fn names(streams: &[Arc<str>]) -> Vec<String> {
    let mut names: Vec<_> = streams.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    let number = |payload: &String| payload[5..payload.len() - 1].parse().unwrap();
    payloads(deliveries).iter().map(number).collect()
}

/// What Kafka's own tools would say.
fn group_offset(cluster: &Cluster) -> Option<i64> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("group.id", GROUP);
    let asking: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition(TOPIC, 0);
    let told = asking.committed_offsets(list, Duration::from_secs(30)).unwrap();
    match told.find_partition(TOPIC, 0).unwrap().offset() {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}

#[tokio::test]
async fn nothing_of_a_partition_is_delivered_before_somebody_said_where_to_start() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=4).await;
    let mut source = source(&cluster);
    assert_eq!(source.reads(), Reads::Alone);
    let streams = assigned(&mut source).await;
    silence(&mut source).await;
    source.start(&streams[0], None).await.unwrap();
    let all = deliveries(&mut source, 5).await;
    assert_eq!(numbers(&all), [0, 1, 2, 3, 4]);
    let event = &all[3].event;
    assert_eq!(event.id.as_deref(), Some("orders/0/3"));
    assert_eq!(event.position, Some(Position::new(3)));
    assert_eq!(event.partition_key.as_deref(), Some("customer-0"));
    assert_eq!(event.header_value("trace"), Some("t-1"));
    assert_eq!(source.lag().await.unwrap(), Some(0));
    silence(&mut source).await;
}

#[tokio::test]
async fn the_pipelines_offset_counts_and_not_the_groups() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=9).await;
    let mut before = started(&cluster, None).await;
    let all = deliveries(&mut before, 10).await;
    before.acknowledge(&tags(&all)).await.unwrap();
    before.close().await.unwrap();
    assert_eq!(group_offset(&cluster), Some(10));
    let mut after = started(&cluster, Some(2)).await;
    assert_eq!(after.lag().await.unwrap(), Some(7));
    let again = deliveries(&mut after, 7).await;
    assert_eq!(ids(&again), ids(&all[3..]));
}

#[tokio::test]
async fn the_groups_offset_follows_and_never_passes_what_is_in_somebodys_hands() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=5).await;
    let mut source = started(&cluster, None).await;
    let all = deliveries(&mut source, 6).await;
    source.acknowledge(&tags(&all[..2])).await.unwrap();
    source.acknowledge(&tags(&all[3..])).await.unwrap();
    // The group is told while more is waited for.
    let waited = tokio::time::timeout(Duration::from_secs(3), source.fetch(1)).await;
    assert!(waited.is_err());
    assert_eq!(group_offset(&cluster), Some(2), "the third is not acknowledged");
    source.acknowledge(&tags(&all[2..3])).await.unwrap();
    source.close().await.unwrap();
    assert_eq!(group_offset(&cluster), Some(6));
    assert!(matches!(news(&mut source, 1).await.unwrap(), Fetched::End));
}

#[tokio::test]
async fn what_is_given_back_comes_again_after_its_delay() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=1).await;
    let mut source = started(&cluster, None).await;
    let all = deliveries(&mut source, 2).await;
    source.give_back(&tags(&all[..1]), Duration::from_millis(600)).await.unwrap();
    silence(&mut source).await;
    let again = deliveries(&mut source, 1).await;
    assert_eq!(again[0].event, all[0].event);
}

/// What one member of a group has, since the group last changed that.
#[derive(Default)]
struct Share {
    streams: Vec<Arc<str>>,
    read: usize,
}

impl Share {
    /// Starts what is assigned at once, as every reader must: librdkafka takes part in no further rebalance before.
    async fn take(&mut self, source: &mut KafkaSource, news: Fetched) {
        match news {
            Fetched::Assigned(streams) => {
                for stream in &streams {
                    source.start(stream, None).await.unwrap();
                }
                *self = Self { streams, read: 0 };
            }
            Fetched::Revoked(gone) => {
                self.streams.retain(|stream| !gone.contains(stream));
                self.read = 0;
            }
            Fetched::Deliveries(deliveries) => self.read += deliveries.len(),
            Fetched::End => panic!("the source ended"),
        }
    }

    fn is_read(&self) -> bool {
        (self.streams.len(), self.read) == (1, 10)
    }
}

/// Asks both until each has one partition and has read it: a member that is not asked is taken for dead, and a group may
/// need more than one round.
async fn one_each(first: &mut KafkaSource, second: &mut KafkaSource) -> (Share, Share) {
    let mut shares = (Share::default(), Share::default());
    let until_both_read = async {
        while !(shares.0.is_read() && shares.1.is_read()) {
            tokio::select! {
                news = first.fetch(9) => shares.0.take(first, news.unwrap()).await,
                news = second.fetch(9) => shares.1.take(second, news.unwrap()).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(50), until_both_read)
        .await
        .expect("the partitions were not shared");
    shares
}

#[tokio::test]
async fn partitions_move_to_a_reader_that_joins_and_back_when_it_leaves() {
    let cluster = cluster(2);
    produce(&cluster, 0, 0..=9).await;
    produce(&cluster, 1, 10..=19).await;
    let mut first = source(&cluster);
    let streams = assigned(&mut first).await;
    assert_eq!(names(&streams), ["orders/0", "orders/1"]);
    first.start("orders/0", Some(Position::new(7))).await.unwrap();
    silence(&mut first).await;
    first.start("orders/1", None).await.unwrap();
    let mut all = numbers(&deliveries(&mut first, 12).await);
    all.sort_unstable();
    assert_eq!(all, [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);

    let mut second = source(&cluster);
    let (firsts, seconds) = one_each(&mut first, &mut second).await;
    assert_ne!(firsts.streams, seconds.streams);

    second.close().await.unwrap();
    let Fetched::Revoked(_) = news(&mut first, 9).await.unwrap() else { panic!("nothing was revoked") };
    assert_eq!(names(&assigned(&mut first).await), ["orders/0", "orders/1"]);
}

#[tokio::test]
async fn tags_of_a_partition_that_was_revoked_say_nothing_any_more() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=4).await;
    let mut first = started(&cluster, None).await;
    let all = deliveries(&mut first, 5).await;
    let mut second = source(&cluster);
    let (gone, _) =
        tokio::join!(news(&mut first, 9), tokio::time::timeout(Duration::from_secs(5), second.fetch(1)));
    assert!(matches!(gone.unwrap(), Fetched::Revoked(_)));
    first.give_back(&tags(&all), Duration::ZERO).await.unwrap();
    first.acknowledge(&tags(&all)).await.unwrap();
    if let Ok(Ok(Fetched::Deliveries(again))) =
        tokio::time::timeout(Duration::from_secs(1), first.fetch(9)).await
    {
        panic!("{again:?}");
    }
}

#[tokio::test]
async fn an_offset_that_the_log_does_not_have_stops_and_is_not_passed_over() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=2).await;
    let mut source = started(&cluster, Some(99)).await;
    for _ in 0..2 {
        let error = news(&mut source, 9).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        assert!(error.to_string().contains("rewind the offset"), "{error}");
    }
}

#[tokio::test]
async fn a_broker_that_was_down_is_found_again_and_nothing_is_lost() {
    let cluster = cluster(1);
    produce(&cluster, 0, 0..=1).await;
    let mut source = started(&cluster, None).await;
    let mut all = numbers(&deliveries(&mut source, 2).await);
    cluster.broker_down(1).unwrap();
    let error = news(&mut source, 9).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    cluster.broker_up(1).unwrap();
    produce(&cluster, 0, 2..=5).await;
    all.extend(numbers(&deliveries(&mut source, 4).await));
    assert_eq!(all, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_loses_no_record() {
    let cluster = cluster(1);
    let mut source = started(&cluster, None).await;
    let mut all = Vec::new();
    for number in 0..10 {
        let dropped = tokio::time::timeout(Duration::from_millis(20), source.fetch(9)).await;
        assert!(dropped.is_err());
        produce(&cluster, 0, number..=number).await;
        all.extend(numbers(&deliveries(&mut source, 1).await));
    }
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_reader_that_was_assigned_something_and_never_started_it_can_leave() {
    let cluster = cluster(1);
    for close in [true, false] {
        let mut source = source(&cluster);
        assigned(&mut source).await;
        if close {
            tokio::time::timeout(Duration::from_secs(30), source.close()).await.unwrap().unwrap();
        } else {
            let dropped = tokio::task::spawn_blocking(move || drop(source));
            tokio::time::timeout(Duration::from_secs(30), dropped).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn settings_that_would_break_a_promise_are_refused() {
    let builder = || KafkaSource::builder("127.0.0.1:1", &[TOPIC], GROUP);
    for builder in [
        builder().setting("enable.auto.commit", "true"),
        builder().setting("group.id", "other"),
        builder().setting("no.such.setting", "1"),
        KafkaSource::builder("127.0.0.1:1", &[], GROUP),
    ] {
        assert_eq!(builder.connect().unwrap_err().kind(), ErrorKind::Invalid);
    }
}
