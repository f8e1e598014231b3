//! One connection to the broker.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{Channel, ConnectionProperties, Consumer, ErrorKind as LapinKind};
use semel::{Error, ErrorKind, Result};

use crate::builder::{Queue, RabbitMqBuilder};
use crate::settler::Settler;

/// How long the broker may take to let us in.
const CONNECT_MOST: Duration = Duration::from_secs(10);
/// How often either side says that it is there, in seconds, unless the URL says.
const HEARTBEAT_S: u16 = 10;
/// The reply code of a farewell without a reason.
const GOODBYE: u16 = 200;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;

/// A connection.
pub(crate) struct Connection {
    amqp: lapin::Connection,
    consumer: Consumer,
    /// The broker ends a channel on which it is asked for a queue that is gone; that must not be the one of the deliveries.
    questions: Channel,
    queue: ShortString,
    pub(crate) settler: Settler,
    /// Above all tags of connections that are gone: the broker counts deliveries from 1 on every channel.
    pub(crate) base: u64,
    /// Why nothing more will come, found out while there still was something to hand over.
    broken: Option<Error>,
}

impl Connection {
    /// Connects, and begins to read.
    pub(crate) async fn open(settings: RabbitMqBuilder, base: u64) -> Result<Self> {
        let opened = tokio::time::timeout(CONNECT_MOST, open(&settings, base)).await;
        opened.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unavailable, "RabbitMQ did not answer in time; ask again later"))
        })
    }

    /// The next messages, one at least. From the moment that one is taken there is no await.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Delivery>> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let first = self.consumer.next().await;
        let mut found = vec![received(first)?];
        while found.len() < most
            && let Some(next) = self.consumer.next().now_or_never()
        {
            match received(next) {
                Ok(message) => found.push(message),
                Err(error) => {
                    self.broken = Some(error);
                    break;
                }
            }
        }
        Ok(found)
    }

    /// How many messages wait in the queue.
    pub(crate) async fn waiting(&self) -> Result<u64> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = self.questions.queue_declare(self.queue.clone(), passive, FieldTable::default()).await;
        Ok(found.map_err(|error| unavailable("ask about the queue", error))?.message_count().into())
    }

    /// Ends the connection after everything that was said on it. What is not settled goes back to the queue.
    pub(crate) async fn close(self) -> Result<()> {
        let closed = self.amqp.close(GOODBYE, "goodbye".into()).await;
        closed.map_err(|error| unavailable("say goodbye", error))
    }
}

async fn open(settings: &RabbitMqBuilder, base: u64) -> Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name("semel".into());
    let connected = lapin::Connection::connect_uri(address(&settings.url)?, properties).await;
    let amqp = connected.map_err(|error| match refusal(&error) {
        Some(ACCESS_REFUSED) => {
            Error::new(ErrorKind::Invalid, "RabbitMQ refuses the name or the password: mend the URL")
                .caused_by(error)
        }
        _ => unavailable("connect", error),
    })?;
    let queue = ShortString::try_new(&*settings.name)
        .map_err(|error| Error::new(ErrorKind::Invalid, "the queue's name is too long").caused_by(error))?;
    let channel =
        || async { amqp.create_channel().await.map_err(|error| unavailable("open a channel", error)) };
    let (deliveries, questions) = (channel().await?, channel().await?);
    declare(&questions, &queue, settings.queue).await?;
    let limited = deliveries.basic_qos(settings.prefetch, BasicQosOptions::default()).await;
    limited.map_err(|error| unavailable("set the prefetch", error))?;
    let nothing = FieldTable::default();
    let consumer =
        deliveries.basic_consume(queue.clone(), "".into(), BasicConsumeOptions::default(), nothing).await;
    let consumer = consumer.map_err(|error| unavailable("read the queue", error))?;
    Ok(Connection {
        amqp,
        consumer,
        questions,
        queue,
        settler: Settler::start(deliveries),
        base,
        broken: None,
    })
}

fn address(url: &str) -> Result<AMQPUri> {
    let parsed = url.parse::<AMQPUri>();
    let mut uri = parsed.map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            format!("this is no URL of RabbitMQ, such as amqp://127.0.0.1:5672/%2f: {error}"),
        )
    })?;
    uri.query.heartbeat.get_or_insert(HEARTBEAT_S);
    Ok(uri)
}

async fn declare(channel: &Channel, queue: &ShortString, kind: Queue) -> Result<()> {
    let options = QueueDeclareOptions {
        passive: kind == Queue::MustExist,
        durable: kind != Queue::MustExist,
        ..QueueDeclareOptions::default()
    };
    let mut arguments = FieldTable::default();
    if kind == Queue::Quorum {
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    }
    let declared = channel.queue_declare(queue.clone(), options, arguments).await;
    declared.map(drop).map_err(|error| match refusal(&error) {
        Some(NOT_FOUND) => {
            let words = format!(
                "RabbitMQ has no queue `{queue}`: make it first, or have the source make it ({error})"
            );
            Error::new(ErrorKind::Invalid, words)
        }
        Some(_) => {
            let words = format!("RabbitMQ refuses the queue `{queue}` as it is asked for: {error}");
            Error::new(ErrorKind::Invalid, words)
        }
        None => unavailable("look for the queue", error),
    })
}

/// The code with which the broker refused something; `None` if it is not the broker that failed.
fn refusal(error: &lapin::Error) -> Option<u16> {
    if let LapinKind::ProtocolError(told) = error.kind() { Some(told.get_id()) } else { None }
}

fn received(next: Option<lapin::Result<Delivery>>) -> Result<Delivery> {
    match next {
        Some(Ok(message)) => Ok(message),
        Some(Err(error)) => Err(unavailable("read the queue", error)),
        None => {
            let words = "RabbitMQ ended the delivery: the queue was deleted, or moved; ask again, and it is read anew";
            Err(Error::new(ErrorKind::Unavailable, words))
        }
    }
}

fn unavailable(what: &str, error: lapin::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("RabbitMQ could not be reached to {what}; ask again later"))
        .caused_by(error)
}
