//! Redis Streams through the loop: one effect each.

use semel_redis_streams::RedisStreamSource;
use test_services::{AppendFsync, Redis};
use test_streams::ask::eventually;
use test_streams::effects::{Effects, by_number, consumer, pipeline, run, unprotected};

const STREAM: &str = "orders";
const GROUP: &str = "billing";

fn server() -> Redis {
    Redis::start(AppendFsync::Always).unwrap()
}

fn add(server: &Redis, numbers: std::ops::RangeInclusive<u32>) {
    for number in numbers {
        server.ask(&["XADD", STREAM, "*", "payload", &format!("{{\"n\":{number}}}")]).unwrap();
    }
}

async fn read(server: &Redis, group: &str, consumer: &str) -> RedisStreamSource {
    RedisStreamSource::connect(&server.url(), STREAM, group, consumer).await.unwrap()
}

fn pending(server: &Redis) -> String {
    server.ask(&["XPENDING", STREAM, GROUP]).unwrap().remove(0)
}

#[tokio::test]
async fn entries_that_were_added_twice_have_one_effect_each_among_two_consumers() {
    let server = server();
    let (pipeline, effects) = (pipeline(), Effects::default());
    let first = run(consumer(&pipeline, read(&server, GROUP, "a").await).key(by_number()), &effects);
    let second = run(consumer(&pipeline, read(&server, GROUP, "b").await).key(by_number()), &effects);
    add(&server, 1..=100);
    add(&server, 1..=100);
    let both = [first, second];
    let done = || both.iter().map(|one| one.stopper.report()).map(|it| it.ran + it.duplicates).sum::<u64>();
    eventually(async || done() == 200).await;
    for one in both {
        one.stop().await;
    }
    effects.assert_once(100);
    assert_eq!(pending(&server), "0");

    let careless = Effects::default();
    let other = run(unprotected(&pipeline, read(&server, "careless", "a").await), &careless);
    other.until(|report| report.ran == 200).await;
    other.stop().await;
    assert_eq!(careless.most(), 2, "the test must see what it looks for");
}

#[tokio::test]
async fn a_second_run_reads_what_is_new_and_the_offset_says_how_far_all_are() {
    let server = server();
    let (pipeline, effects) = (pipeline(), Effects::default());
    add(&server, 1..=20);
    let first = run(consumer(&pipeline, read(&server, GROUP, "a").await), &effects);
    first.until(|report| report.ran == 20).await;
    let report = first.stop().await;
    let last = server.ask(&["XREVRANGE", STREAM, "+", "-", "COUNT", "1"]).unwrap().remove(0);
    let (ms, number) = last.split_once('-').unwrap();
    let at = (ms.parse::<u128>().unwrap() << 64) | number.parse::<u128>().unwrap();
    assert_eq!(report.offsets[STREAM].get(), at);
    assert_eq!(report.lag, Some(0));
    add(&server, 21..=25);
    let second = run(consumer(&pipeline, read(&server, GROUP, "b").await), &effects);
    second.until(|report| report.ran == 5).await;
    assert_eq!(second.stop().await.delivered, 5);
    effects.assert_once(25);
}

#[tokio::test]
async fn a_consumer_that_crashed_anywhere_repeats_nothing_when_it_is_started_again() {
    let server = server();
    let (pipeline, effects) = (pipeline(), Effects::default());
    add(&server, 1..=200);
    for part in 1..=3 {
        let one = run(consumer(&pipeline, read(&server, GROUP, "a").await), &effects);
        eventually(async || effects.events() >= part * 50).await;
        one.crash().await;
    }
    let last = run(consumer(&pipeline, read(&server, GROUP, "a").await), &effects);
    eventually(async || effects.events() == 200 && pending(&server) == "0").await;
    last.stop().await;
    effects.assert_once(200);
}

#[tokio::test]
async fn a_server_that_is_killed_under_a_consumer_costs_time_and_nothing_else() {
    let mut server = server();
    let (pipeline, effects) = (pipeline(), Effects::default());
    let one = run(consumer(&pipeline, read(&server, GROUP, "a").await), &effects);
    for part in 0..3 {
        add(&server, part * 50 + 1..=part * 50 + 50);
        one.until(|report| report.ran > u64::from(part) * 50 + 10).await;
        server.kill().unwrap();
        server.resume().unwrap();
    }
    one.until(|report| report.ran == 150).await;
    one.stop().await;
    effects.assert_once(150);
    assert_eq!(pending(&server), "0");
}
