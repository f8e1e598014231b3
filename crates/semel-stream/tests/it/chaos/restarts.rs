//! Brokers and stores that go away and come back.

use std::time::Duration;

use test_services::{Postgres, postgres_url};
use test_streams::chaos::trial::{goes_on, on_postgres};
use test_streams::promises::Broker;

use crate::brokers::{nats, rabbitmq};

const LEASE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_go_on_by_themselves_after_nats_was_restarted() {
    let mut broker = nats::Killable::start().await;
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
async fn two_consumers_go_on_by_themselves_after_rabbitmq_was_restarted() {
    let mut broker = rabbitmq::Killable::start().await;
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
async fn a_consumer_goes_on_by_itself_after_its_store_was_killed_and_came_back() {
    let mut store = Postgres::start().unwrap();
    // A claim whose answer was lost keeps its event until it lapses.
    let pipeline = on_postgres(&store.url(), Duration::from_secs(2)).await;
    let mut broker = nats::Stream::new().await;
    let port = broker.port();
    goes_on(&mut broker, &pipeline, port, 1, async |_, effects| {
        tokio::task::block_in_place(|| store.kill().unwrap());
        effects.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::task::block_in_place(|| store.resume().unwrap());
    })
    .await;
}
