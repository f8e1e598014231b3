//! Where events come from: what was written, what it means, and the source that is there.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use semel_ops::store_url::Url;
use semel_stream::source::{LinesSource, Source};

/// How many more events a broker may hand over than are in work: so many are at hand when a command ends.
#[cfg(feature = "rabbitmq")]
const AHEAD: usize = 2;

/// What there is, for whoever asked for something else.
const AVAILABLE: &str = "there are `nats://HOST/STREAM?durable=NAME`, `amqp://USER:PASSWORD@HOST/VHOST?queue=NAME`, \
                         `redis://HOST/DB?stream=NAME&group=NAME`, `kafka://HOST:PORT,HOST:PORT/TOPIC?group=NAME`, `file:PATH`, \
                         `file:PATH?follow`, and `-` for standard input";

/// Where events come from. Shown without its password, also by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SourceAddress {
    kind: SourceKind,
    /// The whole of it, as it was written.
    text: Url,
}

/// Which broker, and what of it.
#[derive(Clone, PartialEq, Eq)]
enum SourceKind {
    Stdin,
    File { path: PathBuf, end: FileEnd },
    Nats { server: Url, stream: String, durable: String, subject: Option<String> },
    RabbitMq { server: Url, queue: String },
    Redis { server: Url, stream: String, group: String, consumer: Option<String> },
    Kafka { brokers: String, topic: String, group: String },
}

/// What the end of a file means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileEnd {
    /// There is no more.
    IsTheEnd,
    /// There may be more: wait for it.
    IsWaitedAt,
}

impl SourceAddress {
    /// The source, connected: what is wrong with its address is told now, and not when the first event is wanted.
    pub(super) async fn open(&self, parallel: usize) -> Result<Box<dyn Source>> {
        opened(&self.kind, parallel).await.with_context(|| format!("cannot read {self}"))
    }
}

impl FromStr for SourceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = match text.split_once(':') {
            None if text == "-" => SourceKind::Stdin,
            Some(("file", rest)) => file(rest)?,
            Some((scheme @ ("nats" | "tls"), rest)) => nats(Parts::of(scheme, rest)?)?,
            Some((scheme @ ("amqp" | "amqps"), rest)) => rabbitmq(Parts::of(scheme, rest)?)?,
            Some((scheme @ ("redis" | "rediss"), rest)) => redis(Parts::of(scheme, rest)?)?,
            Some((scheme @ "kafka", rest)) => kafka(Parts::of(scheme, rest)?)?,
            Some((scheme, _)) => return Err(format!("there is no source for `{scheme}:`; {AVAILABLE}")),
            // What was given may be a password without its URL: it is not repeated.
            None => return Err(format!("this is not the address of a source: {AVAILABLE}")),
        };
        Ok(Self { kind, text: Url::new(text) })
    }
}

fn file(rest: &str) -> Result<SourceKind, String> {
    let (path, end) = match rest.rsplit_once('?') {
        None => (rest, FileEnd::IsTheEnd),
        Some((path, "follow")) => (path, FileEnd::IsWaitedAt),
        Some((_, other)) => {
            return Err(format!("a file knows no `{other}`: write `file:PATH`, or `file:PATH?follow`"));
        }
    };
    if path.is_empty() {
        return Err("a file needs a path: write `file:events.jsonl`, say".to_owned());
    }
    Ok(SourceKind::File { path: path.into(), end })
}

fn nats(mut parts: Parts<'_>) -> Result<SourceKind, String> {
    const LIKE: &str = "nats://HOST:4222/STREAM?durable=NAME";
    let stream = parts.path("a stream", LIKE)?;
    let durable = parts.required("durable", LIKE)?;
    let subject = parts.optional("subject");
    let server = parts.server("");
    parts.no_more(&["durable", "subject"])?;
    Ok(SourceKind::Nats { server, stream, durable, subject })
}

fn rabbitmq(mut parts: Parts<'_>) -> Result<SourceKind, String> {
    let queue = parts.required("queue", "amqp://USER:PASSWORD@HOST/VHOST?queue=NAME")?;
    let server = parts.server(parts.path);
    parts.no_more(&["queue"])?;
    Ok(SourceKind::RabbitMq { server, queue })
}

fn redis(mut parts: Parts<'_>) -> Result<SourceKind, String> {
    const LIKE: &str = "redis://HOST:6379/0?stream=NAME&group=NAME";
    let stream = parts.required("stream", LIKE)?;
    let group = parts.required("group", LIKE)?;
    let consumer = parts.optional("consumer");
    let server = parts.server(parts.path);
    parts.no_more(&["stream", "group", "consumer"])?;
    Ok(SourceKind::Redis { server, stream, group, consumer })
}

fn kafka(mut parts: Parts<'_>) -> Result<SourceKind, String> {
    const LIKE: &str = "kafka://HOST:9092,HOST:9092/TOPIC?group=NAME";
    let topic = parts.path("a topic", LIKE)?;
    let group = parts.required("group", LIKE)?;
    parts.no_more(&["group"])?;
    Ok(SourceKind::Kafka { brokers: parts.hosts.to_owned(), topic, group })
}

/// A URL, taken apart.
struct Parts<'a> {
    scheme: &'a str,
    hosts: &'a str,
    /// What is behind the hosts and before the parameters, with its `/`.
    path: &'a str,
    parameters: Vec<(String, String)>,
}

impl<'a> Parts<'a> {
    fn of(scheme: &'a str, rest: &'a str) -> Result<Self, String> {
        let rest = rest.strip_prefix("//").unwrap_or_default();
        let (place, parameters) = rest.rsplit_once('?').unwrap_or((rest, ""));
        // A password that was not escaped may hold a slash.
        let behind_user = place.rfind('@').map_or(0, |at| at.saturating_add(1));
        let hosts_end = place.get(behind_user..).and_then(|hosts| hosts.find('/'));
        let at = hosts_end.map_or(place.len(), |end| behind_user.saturating_add(end));
        let (hosts, path) = place.split_at_checked(at).unwrap_or((place, ""));
        if hosts.get(behind_user..).unwrap_or_default().is_empty() {
            return Err(format!("`{scheme}:` needs a server; {AVAILABLE}"));
        }
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Ok((decoded(name)?, decoded(value)?))
        };
        let parameters = parameters.split('&').filter(|text| !text.is_empty()).map(pair);
        Ok(Self { scheme, hosts, path, parameters: parameters.collect::<Result<_, String>>()? })
    }

    /// The one name in the path.
    fn path(&self, what: &str, like: &str) -> Result<String, String> {
        let name = decoded(self.path.trim_matches('/'))?;
        if name.is_empty() { Err(format!("which one? {what} is missing: write {like}")) } else { Ok(name) }
    }

    fn optional(&mut self, name: &str) -> Option<String> {
        let at = self.parameters.iter().position(|(found, _)| found == name)?;
        Some(self.parameters.remove(at).1).filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &str, like: &str) -> Result<String, String> {
        self.optional(name).ok_or_else(|| format!("`{name}` is missing: write {like}"))
    }

    fn no_more(&self, known: &[&str]) -> Result<(), String> {
        match self.parameters.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("`{}:` knows no `{name}`; there is {}", self.scheme, known.join(", ")))
            }
        }
    }

    fn server(&self, path: &str) -> Url {
        Url::new(&format!("{}://{}{path}", self.scheme, self.hosts))
    }
}

/// `a%20b` as `a b`.
fn decoded(text: &str) -> Result<String, String> {
    let refused = || format!("`{text}` has a % that is no escape; write %25 for a percent sign");
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit().ok_or_else(refused)?, digit().ok_or_else(refused)?);
        bytes.push(u8::try_from(high << 4 | low).map_err(|_| refused())?);
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SourceKind::Stdin => f.write_str("standard input"),
            SourceKind::File { path, end } => {
                let follow = if *end == FileEnd::IsWaitedAt { "?follow" } else { "" };
                write!(f, "file:{}{follow}", path.display())
            }
            SourceKind::Nats { .. }
            | SourceKind::RabbitMq { .. }
            | SourceKind::Redis { .. }
            | SourceKind::Kafka { .. } => self.text.fmt(f),
        }
    }
}

impl fmt::Debug for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg_attr(
    not(any(feature = "nats", feature = "rabbitmq", feature = "redis-streams")),
    expect(clippy::unused_async, reason = "only brokers are waited for")
)]
#[cfg_attr(not(feature = "rabbitmq"), expect(unused_variables, reason = "only RabbitMQ hands over ahead"))]
async fn opened(kind: &SourceKind, parallel: usize) -> Result<Box<dyn Source>> {
    Ok(match kind {
        SourceKind::Stdin => Box::new(LinesSource::stdin()),
        SourceKind::File { path, end } => {
            Box::new(LinesSource::open(path)?.follow(*end == FileEnd::IsWaitedAt))
        }
        #[cfg(feature = "nats")]
        SourceKind::Nats { server, stream, durable, subject } => {
            let builder = semel_nats::NatsSource::connect(server.with_password(), stream, durable);
            let builder = match subject {
                Some(subject) => builder.filter(subject),
                None => builder,
            };
            Box::new(builder.open().await.map_err(next_step)?)
        }
        #[cfg(not(feature = "nats"))]
        SourceKind::Nats { .. } => return Err(semel_ops::missing_feature("NATS", "nats").into()),
        #[cfg(feature = "rabbitmq")]
        SourceKind::RabbitMq { server, queue } => {
            let prefetch = u16::try_from(parallel.saturating_mul(AHEAD)).unwrap_or(u16::MAX);
            let builder =
                semel_rabbitmq::RabbitMqSource::connect(server.with_password(), queue).prefetch(prefetch);
            Box::new(builder.open().await.map_err(next_step)?)
        }
        #[cfg(not(feature = "rabbitmq"))]
        SourceKind::RabbitMq { .. } => return Err(semel_ops::missing_feature("RabbitMQ", "rabbitmq").into()),
        #[cfg(feature = "redis-streams")]
        SourceKind::Redis { server, stream, group, consumer } => {
            let consumer = consumer.clone().unwrap_or_else(name_of_this);
            let url = server.with_password();
            Box::new(
                semel_redis_streams::RedisStreamSource::connect(url, stream, group, &consumer)
                    .await
                    .map_err(next_step)?,
            )
        }
        #[cfg(not(feature = "redis-streams"))]
        SourceKind::Redis { .. } => {
            return Err(semel_ops::missing_feature("Redis Streams", "redis-streams").into());
        }
        #[cfg(feature = "kafka")]
        SourceKind::Kafka { brokers, topic, group } => {
            Box::new(semel_kafka::KafkaSource::connect(brokers, &[topic], group).map_err(next_step)?)
        }
        #[cfg(not(feature = "kafka"))]
        SourceKind::Kafka { .. } => return Err(semel_ops::missing_feature("Kafka", "kafka").into()),
    })
}

/// Nobody else in the group is called so. What a consumer leaves behind under its name is claimed by the others.
#[cfg(feature = "redis-streams")]
fn name_of_this() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}

#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis-streams"))]
fn next_step(error: semel::Error) -> anyhow::Error {
    let is_away = error.kind() == semel::ErrorKind::Unavailable;
    let error = anyhow::Error::from(error);
    if is_away { anyhow::anyhow!("{error:#}\nIs the broker up, and is this its URL?") } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> SourceKind {
        text.parse::<SourceAddress>().unwrap_or_else(|error| panic!("{text}: {error}")).kind
    }

    #[test]
    fn an_address_says_which_broker_and_what_of_it() {
        assert!(kind("-") == SourceKind::Stdin);
        let file = SourceKind::File { path: "a:b.jsonl".into(), end: FileEnd::IsTheEnd };
        assert!(kind("file:a:b.jsonl") == file);
        let followed = SourceKind::File { path: "/var/log/x?y".into(), end: FileEnd::IsWaitedAt };
        assert!(kind("file:/var/log/x?y?follow") == followed);
        let nats = SourceKind::Nats {
            server: Url::new("nats://app:s/3@h:4222"),
            stream: "ORDERS".to_owned(),
            durable: "billing one".to_owned(),
            subject: Some("orders.*".to_owned()),
        };
        assert!(kind("nats://app:s/3@h:4222/ORDERS?durable=billing%20one&subject=orders.*") == nats);
        let queue = SourceKind::RabbitMq { server: Url::new("amqp://h/%2f"), queue: "orders".to_owned() };
        assert!(kind("amqp://h/%2f?queue=orders") == queue);
        let redis = SourceKind::Redis {
            server: Url::new("redis://h:6379/2"),
            stream: "orders".to_owned(),
            group: "billing".to_owned(),
            consumer: None,
        };
        assert!(kind("redis://h:6379/2?group=billing&stream=orders") == redis);
        let kafka = SourceKind::Kafka {
            brokers: "a:9092,b:9092".to_owned(),
            topic: "orders".to_owned(),
            group: "billing".to_owned(),
        };
        assert!(kind("kafka://a:9092,b:9092/orders?group=billing") == kafka);
    }

    #[test]
    fn an_address_that_lacks_something_is_told_what_to_write() {
        for (text, said) in [
            ("", "`-` for standard input"),
            ("events.jsonl", "`file:PATH`"),
            ("mqtt://h", "no source for `mqtt:`"),
            ("file:", "file:events.jsonl"),
            ("file:x?folow", "file:PATH?follow"),
            ("nats://", "needs a server"),
            ("nats:h/S?durable=x", "needs a server"),
            ("nats://h?durable=x", "a stream is missing"),
            ("nats://h/S", "?durable=NAME"),
            ("nats://h/S?durable=", "?durable=NAME"),
            ("nats://h/S?durable=x&grup=y", "knows no `grup`; there is durable, subject"),
            ("amqp://h/v", "?queue=NAME"),
            ("redis://h?stream=s", "group=NAME"),
            ("kafka://h:1?group=g", "a topic is missing"),
            ("kafka://h:1/t?group=%zz", "%25"),
        ] {
            let error = text.parse::<SourceAddress>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_shows_no_password_and_no_error_does() {
        let address: SourceAddress = "amqp://app:s3cret@h/v?queue=q".parse().expect("is fine");
        assert_eq!((address.to_string(), format!("{address:?}")).0, "amqp://app:***@h/v?queue=q");
        for text in ["amqp://app:s3cret@h/v", "s3cret", "nats://app:s3cret@h/S", "redis://:s3cret@h?stream=x"]
        {
            assert!(!text.parse::<SourceAddress>().expect_err(text).contains("s3cret"), "{text}");
        }
    }

    /// One address for each broker, with the feature that brings it.
    const BROKERS: [(&str, &str, bool); 4] = [
        ("nats://127.0.0.1:1/S?durable=d", "nats", cfg!(feature = "nats")),
        ("amqp://127.0.0.1:1/v?queue=q", "rabbitmq", cfg!(feature = "rabbitmq")),
        ("redis://127.0.0.1:1?stream=s&group=g", "redis-streams", cfg!(feature = "redis-streams")),
        ("kafka://127.0.0.1:1/t?group=g", "kafka", cfg!(feature = "kafka")),
    ];

    #[tokio::test]
    async fn only_a_broker_that_is_not_in_this_build_is_refused_for_it() {
        for (address, feature, is_built_in) in BROKERS {
            let address: SourceAddress = address.parse().unwrap_or_else(|error| panic!("{address}: {error}"));
            let opened = address.open(1).await;
            let said = opened.err().map_or_else(String::new, |error| format!("{error:#}"));
            let is_refused = said.contains(&format!("build with `--features {feature}`"));
            assert_eq!(is_refused, !is_built_in, "{address}: {said}");
        }
    }
}
