//! A broker in this process: a log that is read alone, or a queue that many share, with all the faults that brokers have.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use semel::{Error, ErrorKind};
use semel_stream::source::{Delivery, Fetched, Pending, Reads, Source, Tag};
use semel_stream::{Event, Position};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The broker. Clones are the same one.
#[derive(Clone)]
pub struct Feed {
    kept: Arc<Mutex<Kept>>,
    news: Arc<Notify>,
}

#[derive(Default)]
struct Kept {
    reads: Option<Reads>,
    /// What a log has, by stream.
    streams: BTreeMap<Arc<str>, Vec<Event>>,
    /// What a queue has yet to deliver, and when.
    queue: VecDeque<(Instant, Event)>,
    /// What was delivered, by tag; with the reader that has it.
    out: HashMap<Tag, (u64, Event)>,
    acknowledged: Vec<Event>,
    given_back: usize,
    commands: HashMap<u64, VecDeque<Fetched>>,
    last_tag: u64,
    readers: u64,
    is_down: bool,
    has_ended: bool,
    fetches: usize,
    acknowledgements: usize,
}

/// One reader's connection to it. When it is dropped, what it has goes back to the queue.
pub struct FeedSource {
    feed: Feed,
    reader: u64,
    /// Where it reads on, by stream.
    at: HashMap<Arc<str>, usize>,
    is_assigned: bool,
}

impl Feed {
    /// A log with these events, each in its stream and at its position.
    pub fn alone(events: impl IntoIterator<Item = Event>) -> Self {
        let feed = Self::new(Reads::Alone);
        events.into_iter().for_each(|event| feed.push(event));
        feed
    }

    /// A queue with these events, in this order.
    pub fn shared(events: impl IntoIterator<Item = Event>) -> Self {
        let feed = Self::new(Reads::Shared);
        events.into_iter().for_each(|event| feed.push(event));
        feed
    }

    fn new(reads: Reads) -> Self {
        let kept = Kept { reads: Some(reads), ..Kept::default() };
        Self { kept: Arc::new(Mutex::new(kept)), news: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// Publishes one more event.
    pub fn push(&self, event: Event) {
        let mut kept = self.kept();
        match kept.reads {
            Some(Reads::Shared) => kept.queue.push_back((Instant::now(), event)),
            _ => kept.streams.entry(Arc::clone(&event.stream)).or_default().push(event),
        }
        self.news.notify_waiters();
    }

    /// There will be nothing more than there is.
    #[must_use]
    pub fn end(self) -> Self {
        self.kept().has_ended = true;
        self.news.notify_waiters();
        self
    }

    /// From now on, or no longer, nothing can be reached.
    pub fn set_down(&self, is_down: bool) {
        self.kept().is_down = is_down;
        self.news.notify_waiters();
    }

    /// A new connection.
    pub fn source(&self) -> FeedSource {
        let mut kept = self.kept();
        kept.readers += 1;
        FeedSource { feed: self.clone(), reader: kept.readers, at: HashMap::new(), is_assigned: false }
    }

    /// Tells the reader with this number, counted from 1, something out of line.
    pub fn tell(&self, reader: u64, news: Fetched) {
        self.kept().commands.entry(reader).or_default().push_back(news);
        self.news.notify_waiters();
    }

    /// The ids of what was acknowledged, in that order.
    pub fn acknowledged(&self) -> Vec<String> {
        self.kept().acknowledged.iter().map(id_of).collect()
    }

    /// How many deliveries were given back.
    pub fn given_back(&self) -> usize {
        self.kept().given_back
    }

    /// How often events were asked for, and how often acknowledged.
    pub fn calls(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.fetches, kept.acknowledgements)
    }
}

fn id_of(event: &Event) -> String {
    event.id.as_deref().unwrap_or("none").to_owned()
}

impl Kept {
    fn reached(&self) -> Result<(), Error> {
        if self.is_down {
            return Err(Error::new(ErrorKind::Unavailable, "the broker is down; ask again"));
        }
        Ok(())
    }

    fn hand_out(&mut self, reader: u64, event: Event) -> Delivery {
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        self.out.insert(tag, (reader, event.clone()));
        Delivery { event, tag }
    }

    fn take_from_queue(&mut self, reader: u64, most: usize) -> Vec<Delivery> {
        let now = Instant::now();
        let mut later = VecDeque::new();
        let mut deliveries = Vec::new();
        while let Some((due, event)) = self.queue.pop_front() {
            if due <= now && deliveries.len() < most {
                deliveries.push(self.hand_out(reader, event));
            } else {
                later.push_back((due, event));
            }
        }
        self.queue = later;
        deliveries
    }
}

impl FeedSource {
    /// What there is to say now; otherwise, when to look again at the latest.
    fn next(&mut self, most: usize) -> Result<Result<Fetched, Option<Instant>>, Error> {
        let feed = self.feed.clone();
        let mut kept = feed.kept();
        kept.fetches += 1;
        kept.reached()?;
        if let Some(news) = kept.commands.get_mut(&self.reader).and_then(VecDeque::pop_front) {
            if let Fetched::Revoked(streams) = &news {
                self.at.retain(|stream, _| !streams.contains(stream));
            }
            return Ok(Ok(news));
        }
        if kept.reads == Some(Reads::Alone) && !self.is_assigned {
            self.is_assigned = true;
            return Ok(Ok(Fetched::Assigned(kept.streams.keys().cloned().collect())));
        }
        let mut deliveries = kept.take_from_queue(self.reader, most);
        for (stream, at) in &mut self.at {
            let rest = kept.streams.get(stream).map_or(&[][..], |events| &events[*at..]);
            let next: Vec<_> = rest.iter().take(most - deliveries.len()).cloned().collect();
            *at += next.len();
            deliveries.extend(next.into_iter().map(|event| kept.hand_out(self.reader, event)));
        }
        if !deliveries.is_empty() {
            return Ok(Ok(Fetched::Deliveries(deliveries)));
        }
        let is_all = match kept.reads {
            Some(Reads::Shared) => kept.queue.is_empty() && kept.out.is_empty(),
            _ => kept.streams.keys().all(|stream| self.at.contains_key(stream)),
        };
        if kept.has_ended && is_all {
            return Ok(Ok(Fetched::End));
        }
        Ok(Err(kept.queue.iter().map(|(due, _)| *due).min()))
    }
}

impl Source for FeedSource {
    fn reads(&self) -> Reads {
        self.feed.kept().reads.unwrap()
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(async move {
            let feed = self.feed.clone();
            loop {
                let mut news = std::pin::pin!(feed.news.notified());
                news.as_mut().enable();
                match self.next(most)? {
                    Ok(fetched) => return Ok(fetched),
                    Err(Some(due)) => drop(tokio::time::timeout_at(due, news).await),
                    Err(None) => news.await,
                }
            }
        })
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut kept = self.feed.kept();
            kept.acknowledgements += 1;
            kept.reached()?;
            for tag in tags {
                let event = kept.out.remove(tag).map(|(_, event)| event);
                kept.acknowledged.extend(event);
            }
            self.feed.news.notify_waiters();
            Ok(())
        })
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut kept = self.feed.kept();
            kept.reached()?;
            for tag in tags {
                if let Some((_, event)) = kept.out.remove(tag) {
                    kept.given_back += 1;
                    kept.queue.push_back((Instant::now() + after, event));
                }
            }
            self.feed.news.notify_waiters();
            Ok(())
        })
    }

    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()> {
        Box::pin(async move {
            let kept = self.feed.kept();
            kept.reached()?;
            let behind = |event: &&Event| after.is_some_and(|after| event.position.unwrap() <= after);
            let read = kept.streams.get(stream).map_or(0, |events| events.iter().filter(behind).count());
            self.at.insert(stream.into(), read);
            Ok(())
        })
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(async move {
            let kept = self.feed.kept();
            kept.reached()?;
            let open: HashSet<_> = kept
                .queue
                .iter()
                .map(|(_, event)| event)
                .chain(kept.out.values().map(|(_, event)| event))
                .map(|event| (&event.stream, event.position))
                .collect();
            let mut floor = BTreeMap::new();
            for event in &kept.acknowledged {
                let first_open = open
                    .iter()
                    .filter(|(stream, _)| *stream == &event.stream)
                    .map(|(_, position)| *position)
                    .min();
                if let Some(position) = event.position
                    && first_open.is_none_or(|first| event.position < first)
                {
                    let at = floor.entry(Arc::clone(&event.stream)).or_insert(position);
                    *at = position.max(*at);
                }
            }
            Ok(floor.into_iter().collect())
        })
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        Box::pin(async move {
            let kept = self.feed.kept();
            kept.reached()?;
            let behind = |(stream, events): (&Arc<str>, &Vec<Event>)| {
                events.len() - self.at.get(stream).copied().unwrap_or_default()
            };
            let left = kept.queue.len() + kept.streams.iter().map(behind).sum::<usize>();
            Ok(Some(left as u64))
        })
    }

    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Drop for FeedSource {
    fn drop(&mut self) {
        let mut kept = self.feed.kept();
        if kept.reads == Some(Reads::Shared) {
            let mine: Vec<_> = kept
                .out
                .iter()
                .filter(|(_, (reader, _))| *reader == self.reader)
                .map(|(tag, _)| *tag)
                .collect();
            for tag in mine {
                let (_, event) = kept.out.remove(&tag).unwrap();
                kept.queue.push_back((Instant::now(), event));
            }
        }
        self.feed.news.notify_waiters();
    }
}
