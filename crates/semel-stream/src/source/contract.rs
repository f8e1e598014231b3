//! The contract that every source keeps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel::machine::offset::Position;

use crate::event::Event;

/// A boxed future, which is compiled in the crate that makes it: what a source's methods return, what opens a source, and
/// what [`Consumer::run`](crate::Consumer::run) returns.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Where events come from.
///
/// An error means that the broker cannot be reached now; the source connects again by itself when it is asked the next
/// time. What was delivered and not acknowledged is delivered again, by the broker or after [`start`](Source::start).
pub trait Source: Send {
    /// How streams are spread over readers.
    fn reads(&self) -> Reads;

    /// Waits for news: at most `most` deliveries, one at least, unless something else happened first.
    ///
    /// May be dropped at any await: what it had taken from the broker by then, the next call hands out.
    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched>;

    /// These are processed, and need not be delivered again. A tag of a connection that is gone is passed over: what it
    /// stood for will be delivered again.
    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()>;

    /// These are not processed, and shall be delivered again, to anybody, after this long at the earliest. Where a source
    /// cannot do that, it hands them out again itself.
    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()>;

    /// Delivers a stream from behind this position on; `None` from its start. Called for every stream that was
    /// [assigned](Fetched::Assigned), before anything of it is delivered. Only where [`Reads::Alone`].
    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()>;

    /// Up to where everything was acknowledged, by all readers together. Only where [`Reads::Shared`]; empty where the
    /// broker has no positions.
    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>>;

    /// How many events are yet to be delivered; `None` where nobody knows.
    fn lag(&mut self) -> Pending<'_, Option<u64>>;

    /// Says goodbye: what was acknowledged is on its way, and nothing more is fetched.
    fn close(&mut self) -> Pending<'_, ()>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn reads(&self) -> Reads {
        (**self).reads()
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        (**self).fetch(most)
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        (**self).acknowledge(tags)
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        (**self).give_back(tags, after)
    }

    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()> {
        (**self).start(stream, after)
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        (**self).floor()
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        (**self).lag()
    }

    fn close(&mut self) -> Pending<'_, ()> {
        (**self).close()
    }
}

/// How streams are spread over readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// A stream has one reader at a time, which starts behind the committed offset: a log.
    Alone,
    /// Many readers share a stream, and the broker remembers what was acknowledged: a queue.
    Shared,
}

/// What [`fetch`](Source::fetch) has to say.
#[derive(Debug)]
pub enum Fetched {
    /// Events.
    Deliveries(Vec<Delivery>),
    /// These streams are this reader's from now on.
    Assigned(Vec<Arc<str>>),
    /// These are somebody else's now: what is still to come of them is no longer to be acknowledged or committed.
    Revoked(Vec<Arc<str>>),
    /// There is no more, and there never will be.
    End,
}

/// One event, delivered.
#[derive(Debug)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// What the source knows this delivery by.
    pub tag: Tag,
}

/// A source's own number for one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);
