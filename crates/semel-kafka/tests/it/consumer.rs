//! Kafka through the loop: one effect each. On imitated brokers, as in `source`.

use semel::ErrorKind;
use semel_kafka::KafkaSource;
use test_streams::ask::eventually;
use test_streams::effects::{Effects, by_number, consumer, pipeline, run, unprotected};

use super::source::{TOPIC, cluster, produce, source};

#[tokio::test]
async fn records_that_were_written_twice_have_one_effect_each_while_partitions_move() {
    let cluster = cluster(2);
    let (pipeline, effects) = (pipeline(), Effects::default());
    for partition in [0, 1] {
        produce(&cluster, partition, 1..=50).await;
    }
    let first = run(consumer(&pipeline, source(&cluster)).key(by_number()), &effects);
    first.until(|report| report.ran + report.duplicates == 100).await;
    // The second one joins, and both partitions change hands while there is more.
    let second = run(consumer(&pipeline, source(&cluster)).key(by_number()), &effects);
    for numbers in [51..=75, 76..=100] {
        for partition in [0, 1] {
            produce(&cluster, partition, numbers.clone()).await;
        }
        second.until(|report| report.delivered > 0).await;
    }
    eventually(async || effects.events() == 100).await;
    let (one, other) = tokio::join!(first.stop(), second.stop());
    assert!(other.ran > 0 || other.duplicates > 0, "{one:?} {other:?}");
    effects.assert_once(100);

    let careless = Effects::default();
    let alone = KafkaSource::connect(&cluster.bootstrap_servers(), &[TOPIC], "careless").unwrap();
    let other = run(unprotected(&test_streams::effects::pipeline(), alone), &careless);
    other.until(|report| report.ran == 200).await;
    other.stop().await;
    assert_eq!(careless.most(), 2, "the test must see what it looks for");
}

#[tokio::test]
async fn a_second_run_reads_on_behind_the_committed_offset() {
    let cluster = cluster(1);
    let (pipeline, effects) = (pipeline(), Effects::default());
    produce(&cluster, 0, 1..=20).await;
    let first = run(consumer(&pipeline, source(&cluster)), &effects);
    first.until(|report| report.offsets.values().any(|at| at.get() == 19)).await;
    first.stop().await;
    produce(&cluster, 0, 21..=25).await;
    let second = run(consumer(&pipeline, source(&cluster)), &effects);
    second.until(|report| report.ran == 5).await;
    let report = second.stop().await;
    assert_eq!((report.delivered, report.lag), (5, Some(0)));
    effects.assert_once(25);
}

#[tokio::test]
async fn a_zombie_that_the_brokers_still_feed_cannot_commit() {
    let cluster = cluster(1);
    let (pipeline, effects) = (pipeline(), Effects::default());
    produce(&cluster, 0, 1..=10).await;
    let zombie = run(consumer(&pipeline, source(&cluster)), &effects);
    zombie.until(|report| report.offsets.values().any(|at| at.get() == 9)).await;
    // In a group of its own the brokers give it the same partition.
    let heir = KafkaSource::connect(&cluster.bootstrap_servers(), &[TOPIC], "another").unwrap();
    let heir = run(consumer(&pipeline, heir), &effects);
    eventually(async || pipeline.offset("orders/0").await.unwrap().unwrap().epoch == 2).await;
    produce(&cluster, 0, 11..=30).await;
    assert_eq!(zombie.end().await.unwrap_err().kind(), ErrorKind::Lost);
    heir.until(|report| report.offsets.values().any(|at| at.get() == 29)).await;
    heir.stop().await;
    effects.assert_once(30);
}
