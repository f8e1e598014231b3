//! The contract, kept by a consumer of a queue.

use std::sync::Arc;
use std::time::Duration;

use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};
use semel_stream::source::spi::Dial;
use semel_stream::source::{Delivery, Fetched, Pending, Reads, Source, Tag};

use crate::builder::RabbitMqBuilder;
use crate::connection::Connection;
use crate::message;

/// Events of a queue that any number of readers may share.
///
/// An event's id is the property `message_id`; where producers write none, the key must come from elsewhere, or the policy
/// for events without a key decides. A queue has no positions, so there are no offsets: the broker remembers what was
/// acknowledged. The partition key is the routing key.
///
/// What is not acknowledged is delivered again as soon as its connection is gone; so is what was given back, even if its
/// delay is not over. RabbitMQ does not confirm acknowledgements: one that is lost is an event that is delivered again, and
/// its receipt is found.
pub struct RabbitMqSource {
    settings: RabbitMqBuilder,
    connection: Option<Connection>,
    dial: Dial<Connection>,
    /// The last tag that was handed out, on whichever connection.
    last_tag: u64,
    is_closed: bool,
}

impl RabbitMqSource {
    /// Reads `queue` at `url`, such as `amqp://guest:guest@127.0.0.1:5672/%2f`.
    pub fn connect(url: &str, queue: &str) -> RabbitMqBuilder {
        RabbitMqBuilder::new(url, queue)
    }

    pub(crate) fn new(settings: RabbitMqBuilder) -> Self {
        Self { settings, connection: None, dial: Dial::new(), last_tag: 0, is_closed: false }
    }

    /// The connection; a new one if there is none.
    pub(crate) async fn connection(&mut self) -> Result<&mut Connection> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Invalid, "this source was closed: open another"));
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.dial.finish(|| Connection::open(self.settings.clone(), self.last_tag)).await?,
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
        let Some(connection) = &self.connection else { return Ok(Vec::new()) };
        let mut deliveries = Vec::with_capacity(found.len());
        for message in found {
            connection.settler.delivered(message.delivery_tag);
            let tag = connection.base.saturating_add(message.delivery_tag);
            deliveries.push(Delivery { event: message::event(&self.settings.name, message), tag: Tag(tag) });
            self.last_tag = self.last_tag.max(tag);
        }
        Ok(deliveries)
    }
}

/// The broker's numbers of those tags that are of this connection.
fn numbers(base: u64, tags: &[Tag]) -> impl Iterator<Item = u64> {
    tags.iter().filter_map(move |tag| tag.0.checked_sub(base).filter(|number| *number > 0))
}

impl Source for RabbitMqSource {
    fn reads(&self) -> Reads {
        Reads::Shared
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(async move {
            if self.is_closed {
                return Ok(Fetched::End);
            }
            Ok(Fetched::Deliveries(self.deliveries(most).await?))
        })
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        Box::pin(async move {
            // What a connection that is gone delivered will be delivered again.
            let Some(connection) = &self.connection else { return Ok(()) };
            let sent = connection.settler.acknowledge(numbers(connection.base, tags)).await;
            sent.map_err(|_| {
                self.connection = None;
                let words = "RabbitMQ may not have heard that some events were acknowledged; they may be delivered again";
                Error::new(ErrorKind::Unknown, words)
            })
        })
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        if let Some(connection) = &mut self.connection {
            connection.settler.give_back(numbers(connection.base, tags), after);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a mut self, stream: &'a str, _: Option<Position>) -> Pending<'a, ()> {
        let words = format!("the readers of `{stream}` share it: RabbitMQ knows where it is");
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::Invalid, words))))
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        Box::pin(async move {
            let waiting = self.connection().await?.waiting().await;
            if waiting.is_err() {
                self.connection = None;
            }
            waiting.map(Some)
        })
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
