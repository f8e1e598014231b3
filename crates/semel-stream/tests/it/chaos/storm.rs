//! Everything delivered a hundred times, in no order, to four consumers: one effect each.

use std::time::Duration;

use semel_redis::RedisStore;
use test_services::{postgres_url, redis_url};
use test_streams::chaos::storm::a_storm_makes_one_effect_each;
use test_streams::chaos::trial::{on_postgres, pipeline};

use crate::brokers::{nats, rabbitmq};

const LEASE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_from_nats_makes_one_effect_each_on_postgres() {
    let pipeline = on_postgres(&postgres_url().unwrap(), LEASE).await;
    a_storm_makes_one_effect_each(&nats::Stream::new().await, &pipeline).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_from_rabbitmq_makes_one_effect_each_on_redis() {
    let pipeline = pipeline(RedisStore::connect(&redis_url().unwrap()).await.unwrap(), LEASE);
    a_storm_makes_one_effect_each(&rabbitmq::Queue::durable().await, &pipeline).await;
}
