//! The settings of a source.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{Consumer, StreamConsumer};
use semel::{Error, ErrorKind, Result};
use tokio::sync::mpsc;

use crate::rebalance::Rebalances;
use crate::source::KafkaSource;

/// Settings that are not for others to choose.
const OWN: [&str; 4] = ["bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "group.id"];

/// Builder for [`KafkaSource`]: [`KafkaSource::builder`] starts one.
#[derive(Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct KafkaBuilder {
    topics: Vec<String>,
    config: ClientConfig,
    refused: Option<Error>,
}

impl KafkaBuilder {
    pub(crate) fn new(brokers: &str, topics: &[&str], group: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Info);
        config.set("bootstrap.servers", brokers).set("group.id", group);
        // The group's offset only tells Kafka's own tools how far we are. What counts is the pipeline's.
        config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        // Where events were removed before they were read, going on elsewhere would hide it.
        config.set("auto.offset.reset", "error");
        let refused = (brokers.is_empty() || group.is_empty() || topics.is_empty())
            .then(|| invalid("brokers, topics and a group are needed: name them"));
        Self { topics: topics.iter().map(|&topic| topic.to_owned()).collect(), config, refused }
    }

    /// A setting of librdkafka by its own name.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        if OWN.contains(&name) {
            self.refused = Some(invalid(&format!("`{name}` is not to be set: leave it out")));
        }
        self.config.set(name, value);
        self
    }

    /// The source. It connects by itself, within a tokio runtime, as long as it is asked for events.
    pub fn connect(self) -> Result<KafkaSource> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let (sender, changes) = mpsc::unbounded_channel();
        let refused =
            |error| invalid("these settings are none of librdkafka's: see its list").caused_by(error);
        let consumer: StreamConsumer<Rebalances> =
            self.config.create_with_context(Rebalances::new(sender)).map_err(refused)?;
        let topics: Vec<_> = self.topics.iter().map(String::as_str).collect();
        consumer
            .subscribe(&topics)
            .map_err(|error| invalid("these topics cannot be read: see their names").caused_by(error))?;
        Ok(KafkaSource::new(consumer, changes))
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
