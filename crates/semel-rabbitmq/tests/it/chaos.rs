//! Troubles around RabbitMQ that consumers must live through by themselves: nothing lost, nothing doubled.

use std::time::Duration;

use semel_redis::RedisStore;
use test_services::{postgres_url, redis_url};
use test_streams::chaos::network::consumers_live_without_their_broker;
use test_streams::chaos::storm::a_storm_makes_one_effect_each;
use test_streams::chaos::trial::{goes_on, on_postgres, pipeline};
use test_streams::promises::Broker;

use super::broker::{Killable, Queue};

const LEASE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_go_on_by_themselves_after_rabbitmq_was_restarted() {
    let mut broker = Killable::start().await;
    let pipeline = on_postgres(&postgres_url().unwrap(), LEASE).await;
    let port = broker.port();
    goes_on(&mut broker, &pipeline, port, 2, async |broker, effects| {
        tokio::task::block_in_place(|| {
            broker.server.stop().unwrap();
            effects.open();
            broker.server.resume().unwrap();
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_go_on_after_five_seconds_without_a_network_to_rabbitmq() {
    consumers_live_without_their_broker(&mut Queue::durable().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_from_rabbitmq_makes_one_effect_each_on_redis() {
    let pipeline = pipeline(RedisStore::connect(&redis_url().unwrap()).await.unwrap(), LEASE);
    a_storm_makes_one_effect_each(&Queue::durable().await, &pipeline).await;
}
