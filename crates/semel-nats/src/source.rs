//! The contract, kept by a durable pull consumer.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::{self, AckKind};
use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};
use semel_stream::source::spi::Dial;
use semel_stream::source::{Delivery, Fetched, Pending, Reads, Source, Tag};

use crate::builder::NatsBuilder;
use crate::connection::{Connection, unavailable};
use crate::message;

/// Events of a JetStream stream, read through a durable pull consumer that any number of readers may share.
///
/// An event's id is its header `Nats-Msg-Id`, or else `<stream>/<sequence>`; its position is its sequence, its partition
/// key its subject. Acknowledgements are confirmed by the broker.
///
/// An event that is not acknowledged within the consumer's `ack_wait` is delivered again, to any reader; so is what was in
/// work when a connection broke.
pub struct NatsSource {
    settings: NatsBuilder,
    connection: Option<Connection>,
    dial: Dial<Connection>,
    /// Grows over all connections, so that a tag of one that is gone means nothing on the next.
    last_tag: u64,
    is_closed: bool,
}

impl NatsSource {
    /// Reads `stream` at `url`, such as `nats://127.0.0.1:4222` (several, with commas between them, for a cluster), as the
    /// durable consumer `consumer`, which is made if there is none: from the first event of the stream on.
    pub fn connect(url: &str, stream: &str, consumer: &str) -> NatsBuilder {
        NatsBuilder::new(url, stream, consumer)
    }

    pub(crate) fn new(settings: NatsBuilder) -> Self {
        Self { settings, connection: None, dial: Dial::new(), last_tag: 0, is_closed: false }
    }

    /// The connection; a new one if there is none.
    pub(crate) async fn connection(&mut self) -> Result<&mut Connection> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Invalid, "this source was closed: open another"));
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.dial.finish(|| Connection::open(self.settings.clone())).await?,
        };
        Ok(self.connection.insert(connection))
    }

    async fn deliveries(&mut self, most: usize) -> Result<Vec<Delivery>> {
        let found = match self.connection().await?.next(most).await {
            Ok(found) => found,
            Err(error) => {
                self.connection = None;
                return Err(error);
            }
        };
        Ok(found.into_iter().filter_map(|message| self.delivery(message)).collect())
    }

    /// The event that a message is, kept in mind until it is settled.
    fn delivery(&mut self, message: Message) -> Option<Delivery> {
        let connection = self.connection.as_ref()?;
        let message = jetstream::Message { message, context: connection.context.clone() };
        let Ok(info) = message.info() else {
            tracing::warn!(subject = %message.subject, "a message that JetStream did not send is passed over");
            return None;
        };
        let event = message::event(&self.settings.stream, &info, &message);
        self.last_tag = self.last_tag.saturating_add(1);
        connection.unsettled.add(self.last_tag, message.message.reply.clone()?);
        Some(Delivery { event, tag: Tag(self.last_tag) })
    }

    async fn settle(&mut self, tags: &[Tag], word: AckKind) -> Result<()> {
        // What a connection that is gone delivered will be delivered again.
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let settled = connection.settle(tags.iter().map(|tag| tag.0), word.into()).await;
        if settled.is_err() {
            self.connection = None;
        }
        settled
    }

    async fn info(&mut self) -> Result<jetstream::consumer::Info> {
        let asked = self.connection().await?.consumer.get_info().await;
        asked.map_err(|error| {
            self.connection = None;
            unavailable("ask about the consumer", error)
        })
    }
}

impl Source for NatsSource {
    fn reads(&self) -> Reads {
        Reads::Shared
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(async move {
            if self.is_closed {
                return Ok(Fetched::End);
            }
            loop {
                let deliveries = self.deliveries(most).await?;
                if !deliveries.is_empty() {
                    return Ok(Fetched::Deliveries(deliveries));
                }
            }
        })
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        Box::pin(self.settle(tags, AckKind::Ack))
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        let delay = (!after.is_zero()).then_some(after);
        Box::pin(self.settle(tags, AckKind::Nak(delay)))
    }

    fn start<'a>(&'a mut self, stream: &'a str, _: Option<Position>) -> Pending<'a, ()> {
        let words = format!("the readers of `{stream}` share it: NATS knows where it is");
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::Invalid, words))))
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(async move {
            let floor = self.info().await?.ack_floor.stream_sequence;
            // Sequences start at 1: at 0 nothing was acknowledged.
            let position =
                (floor > 0).then(|| (Arc::clone(&self.settings.stream), Position::new(floor.into())));
            Ok(position.into_iter().collect())
        })
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        Box::pin(async move { Ok(Some(self.info().await?.num_pending)) })
    }

    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.is_closed = true;
            match self.connection.take() {
                Some(connection) => connection.close().await,
                None => Ok(()),
            }
        })
    }
}
