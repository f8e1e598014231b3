//! Troubles around NATS that consumers must live through by themselves: nothing lost, nothing doubled.

use std::time::Duration;

use semel::{Error, ErrorKind, Outcome};
use semel_postgres::{Connecting, InTransaction, InTransactionHandled};
use semel_stream::Event;
use test_services::{Postgres, postgres_url};
use test_streams::chaos::network::{OUTAGE, consumers_live_without_their_broker};
use test_streams::chaos::relay::Relay;
use test_streams::chaos::storm::a_storm_makes_one_effect_each;
use test_streams::chaos::trial::{BEFORE, EVENTS, Effects, consumer, goes_on, on_postgres, publish};
use test_streams::promises::{Broker, KEY_HEADER, until};
use tokio_postgres::{Client, NoTls, Transaction};

use super::broker::{Killable, Stream};

const LEASE: Duration = Duration::from_mins(1);
/// A claim whose answer was lost keeps its event until it lapses.
const SHORT_LEASE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_go_on_by_themselves_after_nats_was_restarted() {
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
async fn a_consumer_goes_on_by_itself_after_its_store_was_killed_and_came_back() {
    let mut store = Postgres::start().unwrap();
    let pipeline = on_postgres(&store.url(), SHORT_LEASE).await;
    let mut broker = Stream::new().await;
    let port = broker.port();
    goes_on(&mut broker, &pipeline, port, 1, async |_, effects| {
        tokio::task::block_in_place(|| store.kill().unwrap());
        effects.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::task::block_in_place(|| store.resume().unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_go_on_after_five_seconds_without_a_network_to_nats() {
    consumers_live_without_their_broker(&mut Stream::new().await).await;
}

/// A PostgreSQL, and the address that leads to it through a relay.
async fn behind_a_relay() -> (Postgres, Relay, String) {
    let server = Postgres::start().unwrap();
    let relay = Relay::to(server.port()).await;
    let url = server.url().replace(&server.port().to_string(), &relay.port().to_string());
    (server, relay, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_goes_on_after_five_seconds_without_a_network_to_its_store() {
    let (_server, relay, url) = behind_a_relay().await;
    let pipeline = on_postgres(&url, SHORT_LEASE).await;
    let mut broker = Stream::new().await;
    let port = broker.port();
    goes_on(&mut broker, &pipeline, port, 1, async |_, effects| {
        relay.drop_everything(OUTAGE, || effects.open()).await;
    })
    .await;
}

async fn connected(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

fn connecting(url: &str) -> impl Fn() -> Connecting + Send + Sync + 'static + use<> {
    let url = url.to_owned();
    move || {
        let url = url.clone();
        Box::pin(async move {
            connected(&url).await.map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))
        })
    }
}

fn charge<'a>(
    event: &'a Event,
    transaction: &'a Transaction<'a>,
    effects: Effects,
) -> InTransactionHandled<'a> {
    Box::pin(async move {
        effects.begin().await;
        let key = event.header_value(KEY_HEADER);
        transaction.execute("INSERT INTO charged VALUES ($1)", &[&key]).await?;
        Ok(Outcome::success("charged"))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_a_network_cut_off_charge_exactly_once() {
    let (server, relay, url) = behind_a_relay().await;
    let pipeline = on_postgres(&url, SHORT_LEASE).await;
    server.ask("CREATE TABLE charged (event text)").unwrap();
    let (broker, effects) = (Stream::new().await, Effects::gated());
    let ids = publish(&broker).await;
    let begun = effects.clone();
    let work = InTransaction::new(connecting(&url), move |event, _, transaction| {
        charge(event, transaction, begun.clone())
    });
    let consumer = consumer(&pipeline, broker.reader(broker.port()), &effects);
    let stopper = consumer.stopper();
    let running = tokio::spawn(consumer.run_with(work));
    until(async || stopper.report().ran >= BEFORE as u64).await;
    relay.drop_everything(OUTAGE, || effects.open()).await;
    until(async || {
        let unseen = pipeline.unseen(&ids).await;
        unseen.is_ok_and(|unseen| unseen.iter().all(|unseen| matches!(unseen, Ok(false))))
            && broker.left().await == Some(0)
    })
    .await;
    stopper.stop();
    running.await.unwrap().unwrap();
    assert!(effects.waits() > 0, "nobody had to try again");
    let charged = server.ask("SELECT count(*) || ' ' || count(DISTINCT event) FROM charged").unwrap();
    assert_eq!(charged, format!("{EVENTS} {EVENTS}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_from_nats_makes_one_effect_each_on_postgres() {
    let pipeline = on_postgres(&postgres_url().unwrap(), LEASE).await;
    a_storm_makes_one_effect_each(&Stream::new().await, &pipeline).await;
}
