//! Topics of Kafka as a source.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};
use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};
use semel_stream::source::spi::Outstanding;
use semel_stream::source::{Delivery, Fetched, Pending, Reads, Source, Tag};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::builder::KafkaBuilder;
use crate::error::failure;
use crate::message;
use crate::partition::{Partitions, behind};
use crate::rebalance::{self, Change, Extent, Place, Rebalances};

/// How often the group is told how far we are.
const BETWEEN_COMMITS: Duration = Duration::from_secs(1);
/// How long a broker may take to say where a partition ends.
const WATERMARKS_WITHIN: Duration = Duration::from_secs(5);

/// Topics of Apache Kafka, read as a member of a consumer group.
///
/// The group decides who reads which partition; each is a stream `<topic>/<partition>`, and starts behind the pipeline's
/// own offset, not the group's. The group's offset follows, never ahead of an event that is still being processed, so
/// that Kafka's own tools show how far the pipeline is. Nothing of a partition is read before the pipeline has taken it.
///
/// Where the log no longer has what comes behind the pipeline's offset, the source says so, and does not go on elsewhere;
/// with the setting `auto.offset.reset` it does, and what was removed is lost in silence.
///
/// Over plain connections only: librdkafka's TLS would bring OpenSSL along. Every compression that Kafka has is read.
///
/// The tests of this source run on the brokers that librdkafka itself imitates, not on Kafka's.
pub struct KafkaSource {
    consumer: Option<Arc<StreamConsumer<Rebalances>>>,
    changes: UnboundedReceiver<Change>,
    partitions: Partitions,
    /// What was assigned and waits until it is said where each partition starts.
    waiting: Option<(Vec<Place>, Extent)>,
    outstanding: Outstanding,
    /// When the group is to be told how far we are; `None` if it knows.
    commit_at: Option<Instant>,
    /// An error that stays until the group decides anew.
    fault: Option<(ErrorKind, String)>,
}

impl KafkaSource {
    /// Reads topics as a member of this group; `brokers` as `host:port`, with commas between them.
    pub fn connect(brokers: &str, topics: &[&str], group: &str) -> Result<Self> {
        Self::builder(brokers, topics, group).connect()
    }

    /// A source with choices of your own.
    pub fn builder(brokers: &str, topics: &[&str], group: &str) -> KafkaBuilder {
        KafkaBuilder::new(brokers, topics, group)
    }

    pub(crate) fn new(consumer: StreamConsumer<Rebalances>, changes: UnboundedReceiver<Change>) -> Self {
        Self {
            consumer: Some(Arc::new(consumer)),
            changes,
            partitions: Partitions::default(),
            waiting: None,
            outstanding: Outstanding::default(),
            commit_at: None,
            fault: None,
        }
    }

    async fn news(&mut self, most: usize) -> Result<Fetched> {
        let Some(consumer) = self.consumer.clone() else { return Ok(Fetched::End) };
        let most = most.max(1);
        loop {
            if let Ok(change) = self.changes.try_recv() {
                return Ok(self.changed(change));
            }
            let mut deliveries = self.outstanding.due(most);
            if deliveries.is_empty() {
                let fault = self.fault.as_ref();
                let record = tokio::select! {
                    biased;
                    change = self.changes.recv() => match change {
                        Some(change) => return Ok(self.changed(change)),
                        None => return Ok(Fetched::End),
                    },
                    () = self.outstanding.until_due() => continue,
                    () = until(self.commit_at) => None,
                    () = std::future::ready(()), if fault.is_some() => None,
                    record = consumer.recv() => Some(record),
                };
                match record {
                    Some(record) => self.take(record, &mut deliveries)?,
                    None => self.commit(&consumer, CommitMode::Async),
                }
                if let Some((kind, message)) = &self.fault {
                    return Err(Error::new(*kind, message.as_str()));
                }
            }
            // What is here already comes along. An error meanwhile waits: what was taken must not be lost for it.
            while deliveries.len() < most
                && self.fault.is_none()
                && let Some(record) = consumer.recv().now_or_never()
            {
                if let Err(error) = self.take(record, &mut deliveries) {
                    tracing::warn!(%error, "told while events were fetched");
                }
            }
            if !deliveries.is_empty() {
                return Ok(Fetched::Deliveries(deliveries));
            }
        }
    }

    /// Takes a record, if its partition is ours.
    fn take(
        &mut self,
        record: rdkafka::error::KafkaResult<BorrowedMessage<'_>>,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<()> {
        let record = record.map_err(|error| {
            let error = failure(error);
            if error.kind() == ErrorKind::Invalid {
                self.fault = Some((error.kind(), error.to_string()));
            }
            error
        })?;
        let Some(partition) = self.partitions.get_mut(record.topic(), record.partition()) else {
            return Ok(());
        };
        if partition.next.is_some() {
            partition.next = Some(Offset::Offset(record.offset().saturating_add(1)));
            deliveries.push(self.outstanding.hand_out(message::event(&partition.stream, &record)));
        }
        Ok(())
    }

    fn changed(&mut self, change: Change) -> Fetched {
        self.fault = None;
        match change {
            Change::Assigned(places, extent) => {
                let streams = places.iter().map(|place| self.partitions.add(place)).collect();
                self.waiting = Some((places, extent));
                Fetched::Assigned(streams)
            }
            Change::Revoked(places) => {
                self.waiting = None;
                let streams: Vec<_> =
                    places.iter().filter_map(|place| self.partitions.remove(place)).collect();
                for stream in &streams {
                    self.outstanding.forget(stream);
                }
                Fetched::Revoked(streams)
            }
        }
    }

    /// Where a partition starts. Once that is known of all that were assigned together, they are read.
    fn begin(&mut self, stream: &str, after: Option<Position>) -> Result<()> {
        let offset = behind(after)?;
        let Some(partition) = self.partitions.of_stream(stream) else { return Ok(()) };
        partition.next = Some(offset);
        let (Some((places, extent)), Some(consumer)) = (&self.waiting, &self.consumer) else {
            let message =
                format!("`{stream}` is being read already: it starts anew when the group assigns it anew");
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let mut list = TopicPartitionList::new();
        for (topic, number) in places {
            let next = self.partitions.get_mut(topic, *number).and_then(|partition| partition.next);
            let Some(next) = next else { return Ok(()) };
            list.add_partition_offset(topic, *number, next).map_err(failure)?;
        }
        rebalance::assign(&**consumer, &list, *extent).map_err(failure)?;
        self.waiting = None;
        Ok(())
    }

    /// Tells the group how far we are. What it does not hear, it hears the next time.
    fn commit(&mut self, consumer: &StreamConsumer<Rebalances>, mode: CommitMode) {
        self.commit_at = None;
        if let Some(list) = self.partitions.frontier(self.outstanding.events())
            && let Err(error) = consumer.commit(&list, mode)
        {
            tracing::debug!(%error, "Kafka did not take the group's offset; the pipeline has its own");
        }
    }

    async fn count_lag(&mut self) -> Result<Option<u64>> {
        let Some(consumer) = self.consumer.clone() else { return Ok(None) };
        let started = self.partitions.iter().filter_map(|(topic, number, partition)| {
            partition.next.map(|next| (topic.to_owned(), number, next))
        });
        let started: Vec<_> = started.collect();
        if started.is_empty() {
            return Ok(None);
        }
        let counted = tokio::task::spawn_blocking(move || {
            let mut lag = 0_u64;
            for (topic, number, next) in started {
                let (low, high) = consumer.fetch_watermarks(&topic, number, WATERMARKS_WITHIN)?;
                let next = next.to_raw().unwrap_or(low).max(low);
                lag = lag.saturating_add(u64::try_from(high.saturating_sub(next)).unwrap_or(0));
            }
            rdkafka::error::KafkaResult::Ok(lag)
        });
        match counted.await {
            Ok(lag) => lag.map(Some).map_err(failure),
            Err(_) => Ok(None),
        }
    }

    /// Leaves the group. It would wait for an answer about partitions that were assigned and not started.
    fn leave(&mut self) -> Option<Arc<StreamConsumer<Rebalances>>> {
        let consumer = self.consumer.take()?;
        if self.waiting.take().is_some()
            && let Err(error) = consumer.unassign()
        {
            tracing::debug!(%error, "Kafka did not take an answer to a rebalance");
        }
        Some(consumer)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Source for KafkaSource {
    fn reads(&self) -> Reads {
        Reads::Alone
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(self.news(most))
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        self.outstanding.settle(tags);
        if self.commit_at.is_none() {
            self.commit_at = Instant::now().checked_add(BETWEEN_COMMITS);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        self.outstanding.give_back(tags, after);
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()> {
        Box::pin(std::future::ready(self.begin(stream, after)))
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        Box::pin(self.count_lag())
    }

    fn close(&mut self) -> Pending<'_, ()> {
        let consumer = self.leave();
        let list = self.partitions.frontier(self.outstanding.events());
        Box::pin(async move {
            let Some(consumer) = consumer else { return Ok(()) };
            let closed = tokio::task::spawn_blocking(move || {
                let told = list.map(|list| consumer.commit(&list, CommitMode::Sync));
                if let Some(Err(error)) = told {
                    tracing::debug!(%error, "Kafka did not take the group's offset; the pipeline has its own");
                }
                // Says goodbye to the group, and waits for that.
                drop(consumer);
            });
            // A panic within librdkafka's goodbye changes nothing for us.
            let _ = closed.await;
            Ok(())
        })
    }
}

impl Drop for KafkaSource {
    fn drop(&mut self) {
        if let Some(consumer) = self.leave() {
            // To leave the group takes a while, and whoever drops us may have other things to do.
            std::thread::spawn(move || drop(consumer));
        }
    }
}

impl fmt::Debug for KafkaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
