//! Redis Streams, on a real server.

use std::time::Duration;

use semel::ErrorKind;
use semel_redis_streams::RedisStreamSource;
use semel_stream::source::{Delivery, Reads, Source};
use test_services::{AppendFsync, Redis};
use test_streams::ask::{deliveries, ids, news, payloads, silence, tags};

const STREAM: &str = "orders";
const GROUP: &str = "billing";

fn server() -> Redis {
    Redis::start(AppendFsync::Always).unwrap()
}

/// Adds entries with ids that say which they are.
fn add(server: &Redis, numbers: std::ops::RangeInclusive<u32>) {
    for number in numbers {
        server.ask(&["XADD", STREAM, &format!("1-{number}"), "payload", &format!("{number}")]).unwrap();
    }
}

async fn reader(server: &Redis, consumer: &str) -> RedisStreamSource {
    RedisStreamSource::connect(&server.url(), STREAM, GROUP, consumer).await.unwrap()
}

async fn hasty(server: &Redis, consumer: &str) -> RedisStreamSource {
    let builder = RedisStreamSource::builder(&server.url(), STREAM, GROUP, consumer);
    builder.claim_idle(Duration::from_millis(100)).connect().await.unwrap()
}

fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    payloads(deliveries).iter().map(|payload| payload.parse().unwrap()).collect()
}

fn pending(server: &Redis) -> u32 {
    server.ask(&["XPENDING", STREAM, GROUP]).unwrap()[0].parse().unwrap()
}

async fn floor(source: &mut RedisStreamSource) -> Option<u128> {
    let floor = source.floor().await.unwrap();
    assert!(floor.iter().all(|(stream, _)| &**stream == STREAM));
    floor.first().map(|(_, position)| position.get())
}

#[tokio::test]
async fn every_entry_goes_to_one_reader_of_the_group_until_it_is_acknowledged() {
    let server = server();
    let (mut first, mut second) = (reader(&server, "a").await, reader(&server, "b").await);
    assert_eq!(first.reads(), Reads::Shared);
    add(&server, 1..=4);
    let some = deliveries(&mut first, 2).await;
    let others = deliveries(&mut second, 2).await;
    assert_eq!([numbers(&some), numbers(&others)].concat(), [1, 2, 3, 4]);
    assert_eq!(ids(&some), ["orders/1-1", "orders/1-2"]);
    assert_eq!(some[0].event.position.unwrap().get(), (1 << 64) | 1);
    assert_eq!(some[0].event.deliveries, Some(1));
    assert_eq!(pending(&server), 4);
    first.acknowledge(&tags(&some)).await.unwrap();
    first.acknowledge(&tags(&some)).await.unwrap();
    assert_eq!(pending(&server), 2);
    silence(&mut first).await;
    silence(&mut second).await;
}

#[tokio::test]
async fn the_floor_is_below_whatever_any_reader_has_not_acknowledged() {
    let server = server();
    let (mut first, mut second) = (reader(&server, "a").await, reader(&server, "b").await);
    assert_eq!(floor(&mut first).await, None);
    add(&server, 1..=6);
    assert_eq!(first.lag().await.unwrap(), Some(6));
    let some = deliveries(&mut first, 2).await;
    let others = deliveries(&mut second, 2).await;
    assert_eq!(first.lag().await.unwrap(), Some(2));
    second.acknowledge(&tags(&others)).await.unwrap();
    assert_eq!(floor(&mut second).await, Some(1 << 64), "the first reader's are not acknowledged");
    first.acknowledge(&tags(&some[..1])).await.unwrap();
    assert_eq!(floor(&mut second).await, Some((1 << 64) | 1));
    first.acknowledge(&tags(&some[1..])).await.unwrap();
    assert_eq!(floor(&mut second).await, Some((1 << 64) | 4), "what nobody has read is not acknowledged");
}

#[tokio::test]
async fn what_a_consumer_left_behind_is_what_it_reads_first() {
    let server = server();
    let mut before = reader(&server, "a").await;
    add(&server, 1..=5);
    let some = deliveries(&mut before, 3).await;
    before.acknowledge(&tags(&some[1..2])).await.unwrap();
    drop(before);
    let mut after = reader(&server, "a").await;
    let again = deliveries(&mut after, 4).await;
    assert_eq!(numbers(&again), [1, 3, 4, 5]);
    let counts: Vec<_> = again.iter().map(|delivery| delivery.event.deliveries).collect();
    assert_eq!(counts, [Some(2), Some(2), Some(1), Some(1)]);
}

#[tokio::test]
async fn what_another_consumer_left_behind_is_taken_from_it_and_not_too_early() {
    let server = server();
    let mut dead = reader(&server, "dead").await;
    add(&server, 1..=3);
    deliveries(&mut dead, 3).await;
    drop(dead);
    let mut patient = reader(&server, "patient").await;
    silence(&mut patient).await;
    let mut heir = hasty(&server, "heir").await;
    let taken = deliveries(&mut heir, 3).await;
    assert_eq!(numbers(&taken), [1, 2, 3]);
    assert_eq!(taken[0].event.deliveries, Some(2));
    // What lies here for longer than that is claimed again, and still not handed out twice.
    silence(&mut heir).await;
    heir.acknowledge(&tags(&taken)).await.unwrap();
    assert_eq!(pending(&server), 0);
}

#[tokio::test]
async fn what_is_given_back_stays_pending_and_comes_again_after_its_delay() {
    let server = server();
    let mut source = reader(&server, "a").await;
    add(&server, 1..=2);
    let all = deliveries(&mut source, 2).await;
    source.give_back(&tags(&all[..1]), Duration::from_secs(1)).await.unwrap();
    source.acknowledge(&tags(&all[1..])).await.unwrap();
    silence(&mut source).await;
    let again = deliveries(&mut source, 1).await;
    assert_eq!((numbers(&again), again[0].event.deliveries), (vec![1], Some(2)));
    assert_eq!(pending(&server), 1);
    source.acknowledge(&tags(&again)).await.unwrap();
    assert_eq!(pending(&server), 0);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_loses_no_entry() {
    let server = server();
    let mut source = reader(&server, "a").await;
    let mut all = Vec::new();
    for number in 1..=40 {
        let dropped = tokio::time::timeout(Duration::from_millis(1), source.fetch(9)).await;
        assert!(dropped.is_err());
        add(&server, number..=number);
        all.extend(deliveries(&mut source, 1).await);
    }
    assert_eq!(numbers(&all), (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again_and_no_entry_is_lost_or_handed_out_twice() {
    let mut server = server();
    let mut source = reader(&server, "a").await;
    add(&server, 1..=6);
    let some = deliveries(&mut source, 4).await;
    source.acknowledge(&tags(&some[..2])).await.unwrap();
    server.kill().unwrap();
    let error = source.acknowledge(&tags(&some[2..3])).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Unavailable), "{error:?}");
    let error = news(&mut source, 9).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.resume().unwrap();
    add(&server, 7..=7);
    // 3 and 4 are pending too, but in our hands.
    let others = deliveries(&mut source, 3).await;
    assert_eq!(numbers(&others), [5, 6, 7]);
    source.acknowledge(&tags(&some[2..])).await.unwrap();
    source.acknowledge(&tags(&others)).await.unwrap();
    assert_eq!(pending(&server), 0);
    silence(&mut source).await;
}

#[tokio::test]
async fn a_reply_that_was_lost_with_its_connection_is_read_again() {
    let server = server();
    let mut source = reader(&server, "a").await;
    silence(&mut source).await;
    // As if the server had answered, and the connection had broken before the answer arrived.
    server.ask(&["CLIENT", "PAUSE", "200", "WRITE"]).unwrap();
    let killed = server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).unwrap();
    assert_ne!(killed, ["0"]);
    server.ask(&["CLIENT", "UNPAUSE"]).unwrap();
    add(&server, 1..=1);
    let read = server.ask(&["XREADGROUP", "GROUP", GROUP, "a", "STREAMS", STREAM, ">"]).unwrap();
    assert!(read.contains(&"1-1".to_owned()), "{read:?}");
    let again = deliveries(&mut source, 1).await;
    assert_eq!((numbers(&again), again[0].event.deliveries), (vec![1], Some(2)));
}

#[tokio::test]
async fn an_entry_that_was_deleted_before_it_was_processed_holds_nobody_up() {
    let server = server();
    let mut before = reader(&server, "a").await;
    add(&server, 1..=3);
    deliveries(&mut before, 2).await;
    drop(before);
    server.ask(&["XDEL", STREAM, "1-1"]).unwrap();
    let mut after = reader(&server, "a").await;
    let left = deliveries(&mut after, 2).await;
    assert_eq!(numbers(&left), [2, 3]);
    after.acknowledge(&tags(&left)).await.unwrap();
    assert_eq!(floor(&mut after).await, Some((1 << 64) | 3));
}

#[tokio::test]
async fn a_group_that_is_gone_is_made_again() {
    let server = server();
    let mut source = reader(&server, "a").await;
    add(&server, 1..=1);
    deliveries(&mut source, 1).await;
    server.ask(&["DEL", STREAM]).unwrap();
    add(&server, 2..=2);
    assert_eq!(numbers(&deliveries(&mut source, 1).await), [2]);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_at_once() {
    let server = server();
    server.ask(&["SET", "text", "x"]).unwrap();
    for (url, stream, group) in
        [(server.url(), "text", GROUP), (server.url(), "", GROUP), ("nonsense".to_owned(), STREAM, GROUP)]
    {
        let error = RedisStreamSource::connect(&url, stream, group, "a").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
}
