//! A stream of Redis as a source.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel::machine::offset::Position;
use semel_stream::Event;
use semel_stream::source::spi::Outstanding;
use semel_stream::source::{Fetched, Pending, Reads, Source, Tag};

use crate::builder::{Config, RedisStreamBuilder};
use crate::connection::Connection;
use crate::error::Failure;
use crate::message::EntryId;
use crate::reader::{Read, Reader};

/// A reading that is on its way, and hands the reader back.
type Reading = Pin<Box<dyn Future<Output = (Reader, Result<Read>)> + Send>>;

/// A Redis stream, read in a consumer group.
///
/// Many readers share the stream; the server remembers what each of them was given and has not acknowledged. The name of
/// the consumer should be the process's own, and the same after a restart: then what it left behind is read first. What
/// lies with another consumer for longer than [`claim_idle`](RedisStreamBuilder::claim_idle) is taken from it.
///
/// An entry's field `payload`, or else `data`, is the event's payload, and its other fields are headers; an entry with
/// neither is a JSON object of all its fields. The position is the entry's id as one number, its milliseconds in the
/// upper 64 bits.
///
/// What is given back stays pending in the group, and is handed out again by this source after its delay; if this process
/// ends before that, by whoever takes it over.
///
/// One server, 6.2 or later, and its address; not a cluster's, nor sentinels.
pub struct RedisStreamSource {
    config: Arc<Config>,
    /// Kept when a fetch is dropped: what the server hands over meanwhile, the next one finds.
    reading: Option<Reading>,
    reader: Option<Reader>,
    ready: VecDeque<Event>,
    outstanding: Outstanding,
    /// For all that does not wait.
    asking: Option<Connection>,
}

impl RedisStreamSource {
    /// Reads a stream as this consumer of this group, under the default policy.
    pub fn connect(url: &str, stream: &str, group: &str, consumer: &str) -> Pending<'static, Self> {
        Self::builder(url, stream, group, consumer).connect()
    }

    /// A source with choices of your own.
    pub fn builder(url: &str, stream: &str, group: &str, consumer: &str) -> RedisStreamBuilder {
        RedisStreamBuilder::new(url, stream, group, consumer)
    }

    pub(crate) async fn open(config: Config) -> Result<Self> {
        let config = Arc::new(config);
        let mut reader = Reader::new(Arc::clone(&config));
        reader.connect().await?;
        Ok(Self {
            config,
            reading: None,
            reader: Some(reader),
            ready: VecDeque::new(),
            outstanding: Outstanding::default(),
            asking: None,
        })
    }

    async fn news(&mut self, most: usize) -> Result<Fetched> {
        let most = most.max(1);
        loop {
            let mut deliveries = self.outstanding.due(most);
            while deliveries.len() < most
                && let Some(event) = self.ready.pop_front()
            {
                deliveries.push(self.outstanding.hand_out(event));
            }
            if !deliveries.is_empty() {
                return Ok(Fetched::Deliveries(deliveries));
            }
            let config = &self.config;
            let reader = &mut self.reader;
            let reading = self.reading.get_or_insert_with(|| {
                let reader = reader.take().unwrap_or_else(|| Reader::new(Arc::clone(config)));
                Box::pin(read(reader, most))
            });
            let (reader, read) = tokio::select! {
                biased;
                () = self.outstanding.until_due() => continue,
                read = reading => read,
            };
            self.reading = None;
            self.reader = Some(reader);
            self.take(read?);
        }
    }

    fn take(&mut self, read: Read) {
        let in_hand: HashSet<_> = if read.again {
            // What is in somebody's hands here is pending too, and not to be handed out twice.
            self.outstanding.events().chain(&self.ready).filter_map(|event| event.position).collect()
        } else {
            HashSet::new()
        };
        let stream = &self.config.stream;
        let entries = read.entries.into_iter().filter(|entry| !in_hand.contains(&entry.id.position()));
        self.ready.extend(entries.filter_map(|entry| entry.event(stream)));
    }

    /// The connection for all that does not wait. Whoever takes it puts it back if all went well.
    async fn asking(&mut self) -> Result<Connection> {
        match self.asking.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(&self.config).await.map_err(Failure::reading),
        }
    }

    async fn settle(&mut self, tags: &[Tag]) -> Result<()> {
        let position = |tag: &Tag| self.outstanding.get(*tag).and_then(|event| event.position);
        let ids: Vec<_> = tags.iter().filter_map(position).map(EntryId::at).collect();
        if !ids.is_empty() {
            let mut connection = self.asking().await?;
            let asked = connection.acknowledge(&ids).await;
            // Not settled before the server has said so: whoever asks again asks for the same.
            asked.map_err(Failure::writing)?;
            self.asking = Some(connection);
            self.outstanding.settle(tags);
        }
        Ok(())
    }
}

async fn read(mut reader: Reader, most: usize) -> (Reader, Result<Read>) {
    let read = reader.read(most).await;
    (reader, read)
}

impl Source for RedisStreamSource {
    fn reads(&self) -> Reads {
        Reads::Shared
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(self.news(most))
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        Box::pin(self.settle(tags))
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        self.outstanding.give_back(tags, after);
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a mut self, _: &'a str, _: Option<Position>) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(async {
            let mut connection = self.asking().await?;
            let floor = connection.floor().await.map_err(Failure::reading)?;
            self.asking = Some(connection);
            Ok(floor.map(|floor| (Arc::clone(&self.config.stream), floor.position())).into_iter().collect())
        })
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        Box::pin(async {
            let mut connection = self.asking().await?;
            let lag = connection.lag().await.map_err(Failure::reading)?;
            self.asking = Some(connection);
            Ok(lag)
        })
    }

    fn close(&mut self) -> Pending<'_, ()> {
        // What was read and not acknowledged stays this consumer's, and is what it reads first the next time.
        (self.reading, self.reader, self.asking) = (None, None, None);
        self.ready.clear();
        Box::pin(std::future::ready(Ok(())))
    }
}

impl fmt::Debug for RedisStreamSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStreamSource({})", self.config.stream)
    }
}
