//! A queue of a test's own, on a server that tests share or on one that can be killed.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use semel_rabbitmq::{Queue as Kind, RabbitMqBuilder, RabbitMqSource};
use semel_stream::source::Source;
use test_services::{RabbitMq, rabbitmq_url};
use test_streams::promises::{Broker, KEY_HEADER};

/// What survives a restart is kept on disk.
const PERSISTENT: u8 = 2;

/// A queue of a test's own.
pub(crate) struct Queue {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Queue {
    /// One that survives a restart of the broker.
    pub(crate) async fn durable() -> Self {
        Self::new(Kind::Durable).await
    }

    pub(crate) async fn new(kind: Kind) -> Self {
        Self::at(&rabbitmq_url().unwrap(), kind).await
    }

    pub(crate) async fn at(url: &str, kind: Kind) -> Self {
        let queue = Self { url: url.to_owned(), name: format!("q{:016x}", rand::random::<u64>()), kind };
        queue.source().open().await.unwrap();
        queue
    }

    pub(crate) fn source(&self) -> RabbitMqBuilder {
        RabbitMqSource::connect(&self.url, &self.name).queue(self.kind)
    }

    pub(crate) async fn channel(&self) -> lapin::Result<Channel> {
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    pub(crate) async fn publish_with(&self, channel: &Channel, properties: BasicProperties) {
        let properties = properties.with_delivery_mode(PERSISTENT);
        let options = BasicPublishOptions::default();
        let sent =
            channel.basic_publish("".into(), self.name.as_str().into(), options, b"{}", properties).await;
        assert!(matches!(sent.unwrap().await.unwrap(), Confirmation::Ack(_)));
    }
}

pub(crate) fn with_id(id: &str) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert(KEY_HEADER.into(), AMQPValue::LongString(id.into()));
    BasicProperties::default().with_message_id(id.into()).with_headers(headers)
}

impl Broker for Queue {
    async fn publish_all(&self, ids: &[String]) {
        let channel = self.channel().await.unwrap();
        for id in ids {
            self.publish_with(&channel, with_id(id)).await;
        }
    }

    async fn publish_twins(&self, ids: &[String]) {
        self.publish_all(ids).await;
    }

    async fn left(&self) -> Option<u64> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let channel = self.channel().await.ok()?;
        let queue =
            channel.queue_declare(self.name.as_str().into(), passive, FieldTable::default()).await.ok()?;
        Some(queue.message_count().into())
    }

    fn reader(&self, port: u16) -> Box<dyn Source> {
        let url = format!("amqp://guest:guest@127.0.0.1:{port}/%2f");
        Box::new(RabbitMqSource::connect(&url, &self.name).build())
    }

    fn port(&self) -> u16 {
        let (_, host_and_path) = self.url.rsplit_once(':').unwrap();
        host_and_path.split('/').next().unwrap().parse().unwrap()
    }
}

pub(crate) struct Killable {
    pub(crate) server: RabbitMq,
    queue: Queue,
}

impl Killable {
    pub(crate) async fn start() -> Self {
        let mut server = RabbitMq::start().unwrap();
        let queue = Queue::at(&server.url(), Kind::Durable).await;
        // For a moment a new queue is only in the broker's memory, whatever it confirms meanwhile: a kill would lose it.
        tokio::task::block_in_place(|| {
            server.stop().unwrap();
            server.resume().unwrap();
        });
        Self { server, queue }
    }

    /// Dead at once, and back on its port some time later.
    pub(crate) fn crash(&mut self) {
        tokio::task::block_in_place(|| {
            self.server.kill().unwrap();
            self.server.resume().unwrap();
        });
    }
}

impl Broker for Killable {
    async fn publish_all(&self, ids: &[String]) {
        self.queue.publish_all(ids).await;
    }

    async fn publish_twins(&self, ids: &[String]) {
        self.queue.publish_twins(ids).await;
    }

    async fn left(&self) -> Option<u64> {
        self.queue.left().await
    }

    fn reader(&self, port: u16) -> Box<dyn Source> {
        self.queue.reader(port)
    }

    fn port(&self) -> u16 {
        self.server.port()
    }
}
