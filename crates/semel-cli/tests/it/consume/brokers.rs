//! Each broker, through the binary: every event is sent twice, and runs once.

use super::feed::{Feed, consumed, stopped};
use crate::binary::on;
use crate::place::Place;

/// How many events there are; each is sent twice.
const EVENTS: usize = 20;
/// What tells two events apart, and not two deliveries.
const HEADER: &str = "idempotency-key";

fn sent() -> impl Iterator<Item = String> {
    (0..EVENTS).chain(0..EVENTS).map(|number| format!("order-{number}"))
}

/// Consumes all of it, then once more, when there is nothing left.
fn every_event_runs_once(source: &str, key: &str) {
    let place = Place::file();
    let feed = Feed::new();
    let more = format!("--key {key} --once=1s --parallel 4");
    let account = consumed(&place, source, &feed.tracing("cat;"), &more).fine();
    assert!(
        account.contains("processed           20") && account.contains("duplicates          20"),
        "{account}"
    );
    let traces = feed.traces();
    assert!(traces.len() == EVENTS && traces.values().all(|attempts| attempts == &[1]), "{traces:?}");
    let again = consumed(&place, source, &feed.tracing(""), &more).fine();
    assert!(
        again.contains("delivered            0"),
        "what was acknowledged is not delivered again: {again}"
    );
    let receipts = on(&place, "receipts orders --json").json_lines();
    assert_eq!(receipts.len(), EVENTS);
    assert!(receipts.iter().all(|receipt| receipt["output"] == "{\"cents\":4200}"), "{receipts:?}");
}

#[cfg(feature = "nats")]
#[test]
fn events_of_nats_run_once_however_often_they_were_sent() {
    use async_nats::HeaderMap;
    use async_nats::jetstream::{self, stream};

    let server = test_services::nats_url().expect("NATS starts");
    let name = format!("S{:016x}", rand::random::<u64>());
    crate::place::wait_for(async {
        let context = jetstream::new(async_nats::connect(&*server).await.expect("is up"));
        let subjects = vec![format!("{name}.>")];
        let config = stream::Config { name: name.clone(), subjects, ..stream::Config::default() };
        context.create_stream(config).await.expect("is made");
        for id in sent() {
            let mut headers = HeaderMap::new();
            headers.append(HEADER, id.as_str());
            let published =
                context.publish_with_headers(format!("{name}.x"), headers, "{\"cents\":4200}".into());
            published.await.expect("is sent").await.expect("is stored");
        }
    });
    let place = Place::file();
    let error = stopped(&consumed(&place, &format!("{}/NOWHERE?durable=d", &*server), "true", ""));
    assert!(error.contains("NOWHERE"), "{error}");
    every_event_runs_once(&format!("{}/{name}?durable=billing", &*server), &format!("header:{HEADER}"));
}

#[cfg(feature = "rabbitmq")]
#[test]
fn events_of_rabbitmq_run_once_however_often_they_were_sent() {
    use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
    use lapin::types::{AMQPValue, FieldTable};
    use lapin::{BasicProperties, Connection, ConnectionProperties};

    let server = test_services::rabbitmq_url().expect("RabbitMQ starts");
    let name = format!("q{:016x}", rand::random::<u64>());
    crate::place::wait_for(async {
        let connection = Connection::connect(&server, ConnectionProperties::default()).await.expect("is up");
        let channel = connection.create_channel().await.expect("is opened");
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("is confirmed");
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(name.as_str().into(), durable, FieldTable::default()).await.expect("is made");
        for id in sent() {
            let mut headers = FieldTable::default();
            headers.insert(HEADER.into(), AMQPValue::LongString(id.as_str().into()));
            let properties = BasicProperties::default().with_headers(headers).with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let sent = channel.basic_publish(
                "".into(),
                name.as_str().into(),
                options,
                b"{\"cents\":4200}",
                properties,
            );
            sent.await.expect("is sent").await.expect("is stored");
        }
    });
    every_event_runs_once(&format!("{}?queue={name}", &*server), &format!("header:{HEADER}"));
}

#[cfg(feature = "redis-streams")]
#[test]
fn events_of_a_redis_stream_run_once_however_often_they_were_sent() {
    use test_services::{AppendFsync, Redis};

    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    for id in sent() {
        let words = ["XADD", "orders", "*", HEADER, &id, "payload", "{\"cents\":4200}"];
        server.ask(&words).expect("is added");
    }
    let source = format!("{}?stream=orders&group=billing", server.url());
    every_event_runs_once(&source, &format!("header:{HEADER}"));
}

#[test]
fn a_broker_that_is_away_is_told_from_an_address_that_is_wrong() {
    let place = Place::file();
    for (source, is_built_in) in [
        ("nats://127.0.0.1:1/S?durable=d", cfg!(feature = "nats")),
        ("amqp://127.0.0.1:1/v?queue=q", cfg!(feature = "rabbitmq")),
        ("redis://127.0.0.1:1?stream=s&group=g", cfg!(feature = "redis-streams")),
    ] {
        if !is_built_in {
            continue;
        }
        let error = stopped(&consumed(&place, source, "true", ""));
        assert!(error.contains("127.0.0.1:1") && error.contains("Is the broker up"), "{error}");
    }
}
