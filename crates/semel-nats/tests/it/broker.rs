//! A stream of a test's own, on a server that tests share or on one that can be killed.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, Context, stream};
use semel_nats::NatsSource;
use semel_stream::source::Source;
use test_services::{Nats, nats_url};
use test_streams::promises::{Broker, KEY_HEADER};

/// A stream of a test's own.
pub(crate) struct Stream {
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Stream {
    pub(crate) async fn new() -> Self {
        Self::at(&nats_url().unwrap()).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        let name = format!("S{:016x}", rand::random::<u64>());
        let stream = Self { url: url.to_owned(), name };
        let config = stream::Config {
            name: stream.name.clone(),
            subjects: vec![format!("{}.>", stream.name)],
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        stream.context().await.create_stream(config).await.unwrap();
        stream
    }

    pub(crate) async fn context(&self) -> Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }

    pub(crate) fn source(&self) -> NatsSource {
        NatsSource::connect(&self.url, &self.name, "reader").build()
    }

    pub(crate) async fn publish_with(&self, context: &Context, subject: &str, headers: &[(&str, &str)]) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, *value);
        }
        let subject = format!("{}.{subject}", self.name);
        context.publish_with_headers(subject, map, "{}".into()).await.unwrap().await.unwrap();
    }
}

impl Broker for Stream {
    async fn publish_all(&self, ids: &[String]) {
        let context = self.context().await;
        for id in ids {
            self.publish_with(&context, "events", &[("Nats-Msg-Id", id), (KEY_HEADER, id)]).await;
        }
    }

    async fn publish_twins(&self, ids: &[String]) {
        let context = self.context().await;
        for id in ids {
            self.publish_with(&context, "events", &[(KEY_HEADER, id)]).await;
        }
    }

    async fn left(&self) -> Option<u64> {
        let client = async_nats::connect(&self.url).await.ok()?;
        let stream = jetstream::new(client).get_stream(&self.name).await.ok()?;
        match stream.consumer_info("reader").await {
            Ok(info) => Some(info.num_pending + u64::try_from(info.num_ack_pending).unwrap()),
            // Nobody has read yet.
            Err(_) => Some(stream.cached_info().state.messages),
        }
    }

    fn reader(&self, port: u16) -> Box<dyn Source> {
        let url = format!("nats://127.0.0.1:{port}");
        let source = NatsSource::connect(&url, &self.name, "reader");
        Box::new(source.ack_wait(Duration::from_secs(3)).build())
    }

    fn port(&self) -> u16 {
        self.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }
}

pub(crate) struct Killable {
    pub(crate) server: Nats,
    stream: Stream,
}

impl Killable {
    pub(crate) async fn start() -> Self {
        let server = Nats::start().unwrap();
        let stream = Stream::at(&server.url()).await;
        Self { server, stream }
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
        self.stream.publish_all(ids).await;
    }

    async fn publish_twins(&self, ids: &[String]) {
        self.stream.publish_twins(ids).await;
    }

    async fn left(&self) -> Option<u64> {
        self.stream.left().await
    }

    fn reader(&self, port: u16) -> Box<dyn Source> {
        self.stream.reader(port)
    }

    fn port(&self) -> u16 {
        self.server.port()
    }
}
