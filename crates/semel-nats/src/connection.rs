//! One connection to the broker, and what was delivered on it.
//!
//! What an acknowledgement names is the consumer and the event's number in the stream, so it could be sent on another
//! connection as well. It is not: a broker that comes back from a crash may have forgotten its newest events, and give their
//! numbers to others. Then the acknowledgement of an event that was processed would count for one that was not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, PullConsumer};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::ConsumerErrorKind;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, Message, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use semel::{Error, ErrorKind, Result};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::builder::NatsBuilder;
use crate::progress::Progress;

/// How long one request for events waits at the broker.
const EXPIRES: Duration = Duration::from_secs(30);
/// How often the broker says that it has nothing to say, while a request waits.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A broker that was silent for this long is gone.
const SILENCE_MOST: Duration = Duration::from_secs(15);
/// How often the connection itself is tried, so that one that is gone is found out while nothing is asked.
const PING: Duration = Duration::from_secs(10);
/// How long the broker may take to confirm something.
const ANSWER_MOST: Duration = Duration::from_secs(10);
/// When the client would connect again by itself: when nobody has it any more.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// A connection.
pub(crate) struct Connection {
    client: Client,
    pub(crate) context: Context,
    pub(crate) consumer: PullConsumer,
    inbox: Subject,
    deliveries: Subscriber,
    /// How many events the request that waits at the broker may still bring.
    asked: usize,
    /// When the broker was last heard, or asked.
    heard_at: Instant,
    /// Why nothing more will come, found out while there still was something to hand over.
    broken: Option<Error>,
    lost: watch::Receiver<bool>,
    pub(crate) unsettled: Unsettled,
    _progress: Option<Progress>,
}

/// Where to answer, for each tag that is neither acknowledged nor given back.
#[derive(Clone, Default)]
pub(crate) struct Unsettled(Arc<Mutex<HashMap<u64, (Subject, Instant)>>>);

impl Unsettled {
    fn locked(&self) -> MutexGuard<'_, HashMap<u64, (Subject, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, tag: u64, reply: Subject) {
        self.locked().insert(tag, (reply, Instant::now()));
    }

    /// Where to answer for what was delivered no longer ago than this.
    pub(crate) fn delivered_within(&self, at_most: Duration) -> Vec<Subject> {
        let unsettled = self.locked();
        let young = unsettled.values().filter(|(_, delivered_at)| delivered_at.elapsed() <= at_most);
        young.map(|(reply, _)| reply.clone()).collect()
    }
}

impl Connection {
    /// Connects, and makes the consumer if there is none.
    pub(crate) async fn open(settings: NatsBuilder) -> Result<Self> {
        let (client, lost) = connect(&settings).await?;
        let context = jetstream::new(client.clone());
        let consumer = consumer(&context, &settings).await?;
        let inbox = Subject::from(client.new_inbox());
        let deliveries =
            client.subscribe(inbox.clone()).await.map_err(|error| unavailable("listen", error))?;
        let unsettled = Unsettled::default();
        let ack_wait = consumer.cached_info().config.ack_wait;
        let progress = settings
            .in_progress_for
            .map(|at_most| Progress::start(client.clone(), unsettled.clone(), ack_wait, at_most));
        Ok(Self {
            client,
            context,
            consumer,
            inbox,
            deliveries,
            asked: 0,
            heard_at: Instant::now(),
            broken: None,
            lost,
            unsettled,
            _progress: progress,
        })
    }

    /// The next messages, one at least. From the moment that one is taken there is no await.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Message>> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let first = loop {
            if self.asked == 0 {
                self.ask(most).await?;
            }
            let heard = self.hear().await?;
            if let Some(first) = self.sorted(heard)? {
                break first;
            }
        };
        let mut found = vec![first];
        while found.len() < most
            && let Some(Some(heard)) = self.deliveries.next().now_or_never()
        {
            match self.sorted(heard) {
                Ok(message) => found.extend(message),
                Err(error) => {
                    self.broken = Some(error);
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Asks for events; they come, as they come, to the inbox. One request at a time: so it is known how many are to come.
    async fn ask(&mut self, most: usize) -> Result<()> {
        let batch = BatchConfig {
            batch: most.max(1),
            expires: Some(EXPIRES),
            idle_heartbeat: HEARTBEAT,
            ..BatchConfig::default()
        };
        let asked = batch.batch;
        let sent = self.consumer.request_batch(batch, self.inbox.clone()).await;
        sent.map_err(|error| unavailable("ask for events", error))?;
        // If we are dropped before this, the next call asks again, and more may come than are wanted; they are kept.
        self.asked = asked;
        self.heard_at = Instant::now();
        Ok(())
    }

    async fn hear(&mut self) -> Result<Message> {
        let silent_at = self.heard_at.checked_add(SILENCE_MOST).unwrap_or(self.heard_at);
        let heard = tokio::select! {
            biased;
            heard = timeout_at(silent_at, self.deliveries.next()) => heard,
            _ = self.lost.wait_for(|is_lost| *is_lost) => return Err(gone()),
        };
        let message = heard.map_err(|_| gone())?.ok_or_else(gone)?;
        self.heard_at = Instant::now();
        Ok(message)
    }

    /// The message, if it is an event and not word of the broker about the request.
    fn sorted(&mut self, message: Message) -> Result<Option<Message>> {
        match message.status {
            None | Some(StatusCode::OK) => {
                self.asked = self.asked.saturating_sub(1);
                Ok(Some(message))
            }
            Some(StatusCode::IDLE_HEARTBEAT) => Ok(None),
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                self.asked = 0;
                Ok(None)
            }
            Some(status) => {
                let words = message.description.unwrap_or_default();
                Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("NATS ended the request for events: {status} {words}; ask again later"),
                ))
            }
        }
    }

    /// Says the same of all these tags, and waits until the broker has confirmed each. Tags that are not of this connection are
    /// passed over.
    pub(crate) async fn settle(&mut self, tags: impl Iterator<Item = u64>, word: Bytes) -> Result<()> {
        let replies: Vec<_> = {
            let unsettled = self.unsettled.locked();
            tags.filter_map(|tag| Some((tag, unsettled.get(&tag)?.0.clone()))).collect()
        };
        let (client, unsettled) = (&self.client, &self.unsettled);
        let settled = replies.into_iter().map(|(tag, reply)| {
            let word = word.clone();
            async move {
                client.request(reply, word).await?;
                unsettled.locked().remove(&tag);
                Ok::<_, async_nats::client::RequestError>(())
            }
        });
        let answers = tokio::select! {
            biased;
            answers = join_all(settled) => answers,
            _ = self.lost.wait_for(|is_lost| *is_lost) => return Err(unconfirmed()),
        };
        answers
            .into_iter()
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| unconfirmed().caused_by(error))?;
        Ok(())
    }

    /// Gives back what came and was not handed out, and sees that all that was said is on its way.
    pub(crate) async fn close(mut self) -> Result<()> {
        self.deliveries.unsubscribe().await.map_err(|error| unavailable("say goodbye", error))?;
        while let Some(Some(message)) = self.deliveries.next().now_or_never() {
            if let Some(reply) = message.reply {
                let given_back = self.client.publish(reply, jetstream::AckKind::Nak(None).into()).await;
                given_back.map_err(|error| unavailable("say goodbye", error))?;
            }
        }
        self.client.flush().await.map_err(|error| unavailable("say goodbye", error))
    }
}

/// A client, and word when its connection is lost. It would connect again by itself, and send on the new connection what was
/// meant for the old one: it is put off for longer than it takes us to hear of the loss and drop it.
async fn connect(settings: &NatsBuilder) -> Result<(Client, watch::Receiver<bool>)> {
    let (tell, lost) = watch::channel(false);
    let options = match &settings.credentials {
        Some(text) => ConnectOptions::with_credentials(text).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the credentials are not the text of a .creds file")
                .caused_by(error)
        })?,
        None => ConnectOptions::new(),
    };
    let servers: Vec<_> = settings.url.split(',').map(str::trim).collect();
    let tell = Arc::new(tell);
    let was_connected = Arc::<AtomicBool>::default();
    let is_connected = Arc::clone(&was_connected);
    let options = options
        .name("semel")
        .ping_interval(PING)
        .request_timeout(Some(ANSWER_MOST))
        .max_reconnects(servers.len())
        .reconnect_delay_callback(move |_| {
            if is_connected.load(Ordering::Relaxed) { AGAIN_AFTER } else { Duration::ZERO }
        })
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                tell.send_replace(true);
            }
            std::future::ready(())
        });
    let client = options.connect(servers.as_slice()).await.map_err(|error| {
        let words = match error.kind() {
            ConnectErrorKind::ServerParse => "this is no URL of NATS, such as nats://127.0.0.1:4222",
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                "NATS refuses the name, the password, the token or the credentials: mend them"
            }
            ConnectErrorKind::Dns
            | ConnectErrorKind::TimedOut
            | ConnectErrorKind::Tls
            | ConnectErrorKind::Io
            | ConnectErrorKind::MaxReconnects => return unavailable("connect", error),
        };
        Error::new(ErrorKind::Invalid, words).caused_by(error)
    })?;
    was_connected.store(true, Ordering::Relaxed);
    Ok((client, lost))
}

/// The consumer, made if there is none. One that acknowledges by itself, or that reads something else, is refused.
async fn consumer(context: &Context, settings: &NatsBuilder) -> Result<PullConsumer> {
    let name = &settings.consumer;
    let stream = context.get_stream(&settings.stream).await.map_err(|error| match error.kind() {
        GetStreamErrorKind::Request => unavailable("look for the stream", error),
        GetStreamErrorKind::JetStream(told) if told.code() != 404 => {
            unavailable("look for the stream", error)
        }
        GetStreamErrorKind::EmptyName
        | GetStreamErrorKind::InvalidStreamName
        | GetStreamErrorKind::JetStream(_) => {
            let words = format!("there is no stream `{}` at NATS: make it first", settings.stream);
            Error::new(ErrorKind::Invalid, words).caused_by(error)
        }
    })?;
    let config = Config {
        durable_name: Some(name.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: settings.ack_wait,
        max_ack_pending: settings.max_ack_pending.into(),
        filter_subject: settings.filter.clone().unwrap_or_default(),
        ..Config::default()
    };
    let consumer: Consumer<Config> =
        stream.get_or_create_consumer(name, config).await.map_err(|error| match error.kind() {
            ConsumerErrorKind::InvalidConsumerType | ConsumerErrorKind::InvalidName => {
                let words = format!("`{name}` cannot be a pull consumer of NATS: choose another name");
                Error::new(ErrorKind::Invalid, words).caused_by(error)
            }
            ConsumerErrorKind::JetStream(told) if told.code() == 400 => {
                Error::new(ErrorKind::Invalid, format!("NATS refuses the consumer `{name}`: {told}"))
            }
            ConsumerErrorKind::TimedOut
            | ConsumerErrorKind::Request
            | ConsumerErrorKind::JetStream(_)
            | ConsumerErrorKind::Other => unavailable("look for the consumer", error),
        })?;
    let found = &consumer.cached_info().config;
    if found.ack_policy != AckPolicy::Explicit {
        let words =
            format!("the consumer `{name}` does not acknowledge each event by itself: choose another name");
        return Err(Error::new(ErrorKind::Invalid, words));
    }
    if settings.filter.as_ref().is_some_and(|filter| *filter != found.filter_subject) {
        let words = format!("the consumer `{name}` reads `{}`: choose another name", found.filter_subject);
        return Err(Error::new(ErrorKind::Invalid, words));
    }
    Ok(consumer)
}

pub(crate) fn unavailable(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unavailable, format!("NATS could not be reached to {what}; ask again later"))
        .caused_by(error)
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the connection to NATS is gone; ask again, and another is made")
}

fn unconfirmed() -> Error {
    Error::new(
        ErrorKind::Unknown,
        "NATS did not confirm what was said of some events; they may be delivered again",
    )
}
