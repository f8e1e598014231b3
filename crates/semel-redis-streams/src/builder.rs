//! The settings of a source.

use std::sync::Arc;
use std::time::Duration;

use redis::Client;
use rustls::crypto::{CryptoProvider, ring};
use semel::{Error, ErrorKind, Result};
use semel_stream::source::Pending;

use crate::source::RedisStreamSource;

/// How long an entry may lie with another reader before it is taken from it.
const CLAIM_IDLE: Duration = Duration::from_mins(1);
/// How long a reply may take before it counts as lost.
const REPLY_WITHIN: Duration = Duration::from_secs(5);

/// What to read, and where.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) client: Client,
    pub(crate) stream: Arc<str>,
    pub(crate) group: Box<str>,
    pub(crate) consumer: Box<str>,
    pub(crate) claim_idle: Duration,
    pub(crate) reply_within: Duration,
}

/// Builder for [`RedisStreamSource`]: [`RedisStreamSource::builder`] starts one.
#[derive(Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct RedisStreamBuilder {
    config: Result<Config>,
}

impl RedisStreamBuilder {
    pub(crate) fn new(url: &str, stream: &str, group: &str, consumer: &str) -> Self {
        Self { config: parse(url, stream, group, consumer) }
    }

    fn with(mut self, set: impl FnOnce(&mut Config)) -> Self {
        if let Ok(config) = &mut self.config {
            set(config);
        }
        self
    }

    /// How long an entry may lie with another reader before it is taken from it; a minute by default. Longer than the
    /// slowest handler takes, or readers ask for each other's entries in vain.
    pub fn claim_idle(self, idle: Duration) -> Self {
        self.with(|config| config.claim_idle = idle)
    }

    /// How long a reply may take before it counts as lost; 5 s by default.
    pub fn reply_within(self, span: Duration) -> Self {
        self.with(|config| config.reply_within = span)
    }

    /// Connects, and makes the group if it is not there: it begins with the first entry of the stream.
    pub fn connect(self) -> Pending<'static, RedisStreamSource> {
        Box::pin(connected(self.config))
    }
}

async fn connected(config: Result<Config>) -> Result<RedisStreamSource> {
    let config = config?;
    if config.reply_within.is_zero() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "nothing answers within no time: allow some milliseconds",
        ));
    }
    RedisStreamSource::open(config).await
}

fn parse(url: &str, stream: &str, group: &str, consumer: &str) -> Result<Config> {
    for (what, name) in [("stream", stream), ("group", group), ("consumer", consumer)] {
        if name.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, format!("the {what} has no name: give it one")));
        }
    }
    if url.starts_with("rediss:") && CryptoProvider::get_default().is_none() {
        // The driver takes the process's own provider. If somebody else chooses at the same moment, theirs is as good.
        let _ = ring::default_provider().install_default();
    }
    let client = Client::open(url).map_err(|error| {
        let message = format!("this is no address of a Redis server: {error}; write redis://host:port");
        Error::new(ErrorKind::Invalid, message)
    })?;
    Ok(Config {
        client,
        stream: stream.into(),
        group: group.into(),
        consumer: consumer.into(),
        claim_idle: CLAIM_IDLE,
        reply_within: REPLY_WITHIN,
    })
}
