//! How far each partition was read.

use std::collections::HashMap;
use std::sync::Arc;

use rdkafka::{Offset, TopicPartitionList};
use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};
use semel_stream::Event;

use crate::rebalance::Place;

/// One partition that is this reader's.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) stream: Arc<str>,
    /// What is delivered next; `None` before somebody has said where to start.
    pub(crate) next: Option<Offset>,
    /// What the group's offset was set to last.
    told: Option<i64>,
}

/// The partitions that are this reader's.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    topics: HashMap<Box<str>, HashMap<i32, Partition>>,
}

impl Partitions {
    /// This one is ours; answers what its stream is called.
    pub(crate) fn add(&mut self, (topic, number): &Place) -> Arc<str> {
        let stream: Arc<str> = format!("{topic}/{number}").into();
        let partition = Partition { stream: Arc::clone(&stream), next: None, told: None };
        self.topics.entry(topic.clone()).or_default().insert(*number, partition);
        stream
    }

    /// This one is not ours any more; answers what its stream was called.
    pub(crate) fn remove(&mut self, (topic, number): &Place) -> Option<Arc<str>> {
        Some(self.topics.get_mut(topic)?.remove(number)?.stream)
    }

    /// Where a record belongs; `None` if its partition is not ours.
    pub(crate) fn get_mut(&mut self, topic: &str, number: i32) -> Option<&mut Partition> {
        self.topics.get_mut(topic)?.get_mut(&number)
    }

    /// The partition of a stream.
    pub(crate) fn of_stream(&mut self, stream: &str) -> Option<&mut Partition> {
        let (topic, number) = stream.rsplit_once('/')?;
        self.get_mut(topic, number.parse().ok()?)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i32, &Partition)> {
        self.topics.iter().flat_map(|(topic, numbers)| {
            numbers.iter().map(move |(number, partition)| (&**topic, *number, partition))
        })
    }

    /// What the group's offsets should be, where they have changed: behind everything that was delivered before the first
    /// event that is still in somebody's hands.
    pub(crate) fn frontier<'a>(
        &mut self,
        in_hand: impl Iterator<Item = &'a Event>,
    ) -> Option<TopicPartitionList> {
        let mut first: HashMap<&str, i64> = HashMap::new();
        for event in in_hand {
            let Some(offset) = event.position.and_then(|position| i64::try_from(position.get()).ok()) else {
                continue;
            };
            let least = first.entry(&event.stream).or_insert(offset);
            *least = offset.min(*least);
        }
        let mut list = TopicPartitionList::new();
        for (topic, numbers) in &mut self.topics {
            for (number, partition) in numbers {
                let Some(Offset::Offset(next)) = partition.next else { continue };
                let offset = first.get(&*partition.stream).copied().unwrap_or(next);
                if partition.told == Some(offset) {
                    continue;
                }
                // Only a negative offset is refused.
                if list.add_partition_offset(topic, *number, Offset::Offset(offset)).is_ok() {
                    partition.told = Some(offset);
                }
            }
        }
        (list.count() > 0).then_some(list)
    }
}

/// What is read first, behind a position.
pub(crate) fn behind(after: Option<Position>) -> Result<Offset> {
    let Some(after) = after else { return Ok(Offset::Beginning) };
    let next = i64::try_from(after.get()).ok().and_then(|after| after.checked_add(1));
    next.map(Offset::Offset).ok_or_else(|| {
        let message = format!("{after} is no offset of Kafka's: rewind the pipeline's offset of this stream");
        Error::new(ErrorKind::Invalid, message)
    })
}
