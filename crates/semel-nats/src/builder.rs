//! The settings of a source.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel_stream::source::Pending;

use crate::source::NatsSource;

/// How long the broker waits for an acknowledgement, by default.
pub const ACK_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// How many events may be delivered and not acknowledged, to all readers together, by default.
pub const MAX_ACK_PENDING_DEFAULT: u32 = 1_000;

/// Builder for [`NatsSource`]: [`NatsSource::connect`] starts one.
#[derive(Clone)]
pub struct NatsBuilder {
    pub(crate) url: String,
    pub(crate) credentials: Option<String>,
    pub(crate) stream: Arc<str>,
    pub(crate) consumer: String,
    pub(crate) filter: Option<String>,
    pub(crate) ack_wait: Duration,
    pub(crate) max_ack_pending: u32,
    pub(crate) in_progress_for: Option<Duration>,
}

impl NatsBuilder {
    pub(crate) fn new(url: &str, stream: &str, consumer: &str) -> Self {
        Self {
            url: url.to_owned(),
            credentials: None,
            stream: stream.into(),
            consumer: consumer.to_owned(),
            filter: None,
            ack_wait: ACK_WAIT_DEFAULT,
            max_ack_pending: MAX_ACK_PENDING_DEFAULT,
            in_progress_for: None,
        }
    }

    /// Only events whose subject matches, such as `orders.*`. A consumer that is there already must have the same filter.
    #[must_use]
    pub fn filter(mut self, subject: &str) -> Self {
        self.filter = Some(subject.to_owned());
        self
    }

    /// How long the broker waits for an acknowledgement before it delivers an event again; 30 s by default. For a
    /// consumer that this source makes: one that is there already keeps what it has.
    #[must_use]
    pub fn ack_wait(mut self, ack_wait: Duration) -> Self {
        self.ack_wait = ack_wait;
        self
    }

    /// How many events may be delivered and not acknowledged, to all readers together; 1,000 by default. For a consumer
    /// that this source makes.
    #[must_use]
    pub fn max_ack_pending(mut self, events: u32) -> Self {
        self.max_ack_pending = events;
        self
    }

    /// Tells the broker, while an event is in work, that it still is, so that it is not delivered to somebody else
    /// meanwhile; for at most this long after its delivery, because nobody can tell a slow handler from one that is stuck.
    /// By default an event is delivered again after [`ack_wait`](Self::ack_wait), and its receipt, or its lease, keeps it
    /// from a second run.
    #[must_use]
    pub fn in_progress_for(mut self, at_most: Duration) -> Self {
        self.in_progress_for = Some(at_most);
        self
    }

    /// The text of a `.creds` file. A name and a password, or a token, may also stand in the URL.
    #[must_use]
    pub fn credentials(mut self, text: &str) -> Self {
        self.credentials = Some(text.to_owned());
        self
    }

    /// A source that connects when it is asked for something.
    pub fn build(self) -> NatsSource {
        NatsSource::new(self)
    }

    /// A source that is connected: what is wrong with the address, the stream or the consumer is told now.
    pub fn open(self) -> Pending<'static, NatsSource> {
        Box::pin(opened(self.build()))
    }
}

async fn opened(mut source: NatsSource) -> Result<NatsSource> {
    source.connection().await?;
    Ok(source)
}
