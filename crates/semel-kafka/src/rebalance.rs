//! Which partitions are whose.

use rdkafka::ClientContext;
use rdkafka::TopicPartitionList;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::types::RDKafkaRespErr;
use tokio::sync::mpsc::UnboundedSender;

/// A topic, and the number of one of its partitions.
pub(crate) type Place = (Box<str>, i32);

/// A change that the group decided.
#[derive(Debug)]
pub(crate) enum Change {
    /// These are this reader's, once it has said where to start: until then librdkafka waits.
    Assigned(Vec<Place>, Extent),
    /// These are not any more.
    Revoked(Vec<Place>),
}

/// What an assignment stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that this reader has.
    Whole,
    /// What comes to what it has.
    Added,
}

/// Hears what the group decided, and passes it on.
#[derive(Debug)]
pub(crate) struct Rebalances {
    changes: UnboundedSender<Change>,
}

impl Rebalances {
    pub(crate) fn new(changes: UnboundedSender<Change>) -> Self {
        Self { changes }
    }

    /// Nobody listens any more when the source is gone.
    fn tell(&self, change: Change) {
        let _ = self.changes.send(change);
    }
}

/// Makes these partitions this reader's, from the offsets in the list on.
pub(crate) fn assign<C: ConsumerContext>(
    consumer: &impl Consumer<C>,
    list: &TopicPartitionList,
    extent: Extent,
) -> KafkaResult<()> {
    match extent {
        Extent::Whole => consumer.assign(list),
        Extent::Added => consumer.incremental_assign(list),
    }
}

impl ConsumerContext for Rebalances {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, what: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let extent = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => Extent::Added,
            RebalanceProtocol::Eager | RebalanceProtocol::None => Extent::Whole,
        };
        let elements = list.elements();
        let places: Vec<_> =
            elements.iter().map(|element| (element.topic().into(), element.partition())).collect();
        if what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !places.is_empty() {
            // Not assigned yet: nothing is to be read before the pipeline has said from where.
            return self.tell(Change::Assigned(places, extent));
        }
        let done = match (what, extent) {
            (RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, _) => assign(consumer, list, extent),
            (_, Extent::Whole) => consumer.unassign(),
            (_, Extent::Added) => consumer.incremental_unassign(list),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "Kafka did not take an answer to a rebalance; it will ask again");
        }
        if !places.is_empty() {
            self.tell(Change::Revoked(places));
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "Kafka did not take the group's offset; the pipeline has its own");
        }
    }
}

impl ClientContext for Rebalances {
    fn log(&self, level: RDKafkaLogLevel, what: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => tracing::warn!(what, "librdkafka: {message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
                tracing::debug!(what, "librdkafka: {message}");
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, "librdkafka: {reason}");
    }
}
