//! The settings of a source.

use std::sync::Arc;

use semel::Result;
use semel_stream::source::Pending;

use crate::source::RabbitMqSource;

/// How many events one reader may have that are not acknowledged, by default.
pub const PREFETCH_DEFAULT: u16 = 64;

/// What is known of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// It is there; if not, that is an error.
    #[default]
    MustExist,
    /// Made if it is not there: a classic queue that survives a restart of the broker.
    Durable,
    /// Made if it is not there: a quorum queue, which is replicated, and counts deliveries. Newer brokers put aside what
    /// was given back too often (20 times, unless the queue's `x-delivery-limit` says otherwise).
    Quorum,
}

/// Builder for [`RabbitMqSource`]: [`RabbitMqSource::connect`] starts one.
#[derive(Clone)]
pub struct RabbitMqBuilder {
    pub(crate) url: String,
    pub(crate) name: Arc<str>,
    pub(crate) queue: Queue,
    pub(crate) prefetch: u16,
}

impl RabbitMqBuilder {
    pub(crate) fn new(url: &str, queue: &str) -> Self {
        Self { url: url.to_owned(), name: queue.into(), queue: Queue::default(), prefetch: PREFETCH_DEFAULT }
    }

    /// Whether the queue is to be made if it is not there; by default it is not.
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// How many events this reader may have that are not acknowledged; 64 by default. What is given back counts until its
    /// delay is over. At least as many as are to be in work at once.
    #[must_use]
    pub fn prefetch(mut self, events: u16) -> Self {
        // To the broker, 0 means without bound.
        self.prefetch = events.max(1);
        self
    }

    /// A source that connects when it is asked for something.
    pub fn build(self) -> RabbitMqSource {
        RabbitMqSource::new(self)
    }

    /// A source that is connected: what is wrong with the address or the queue is told now.
    pub fn open(self) -> Pending<'static, RabbitMqSource> {
        Box::pin(opened(self.build()))
    }
}

async fn opened(mut source: RabbitMqSource) -> Result<RabbitMqSource> {
    source.connection().await?;
    Ok(source)
}
