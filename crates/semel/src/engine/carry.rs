//! From ruling to swap and back, the same for every ask.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::batch::{Cost, Sent, Told};
use super::driven::{poll_now, until_heard};
use super::semel::Inner;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::machine::Ruling;
use crate::record::Record;
use crate::store::{Answer, Reply, Swap, SwapReply};

/// How often an ask starts over because another caller was faster. Each time somebody else got on, so this is
/// only reached if one key is fought over for ever.
const STALE_TRIES_MAX: u32 = 1_000;
/// How long to wait before asking again after a lost reply: short enough to stay within a lease.
const UNKNOWN_PAUSES: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(50), Duration::from_millis(250)];

/// Rules on what was found.
pub(super) trait Rule<A>: FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send + 'static {}
impl<A, F: FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send + 'static> Rule<A> for F {}

/// An answer that may be given: whatever had to be written is.
pub(super) struct Carried<A> {
    pub(super) answer: A,
    /// The record as it now is; `None` if there is none.
    pub(super) record: Option<Arc<Record>>,
    pub(super) now: Timestamp,
    pub(super) cost: Cost,
}

/// What the caller takes for granted before it asks. A wrong guess costs a round trip and nothing else.
pub(super) enum Guess {
    /// There is no record.
    Absent,
    /// The record is as this caller last saw it.
    Unchanged(Arc<Record>),
    /// It could be anything: look first.
    Open,
}

/// For asks whose answer may go unheard.
pub(super) fn let_go<A>(_: &Arc<Inner>, carried: Carried<A>) {
    drop(carried);
}

impl Inner {
    /// Rules on what is found, writes what the ruling says, and starts over if somebody else wrote first.
    ///
    /// Goes as far as the store answers at once, before anything is awaited; what has to wait goes on in a task of its
    /// own. So it may be cancelled: an answer that nobody is left to hear goes to `unheard`.
    pub(super) fn carry<A: Send + 'static>(
        self: &Arc<Self>,
        key: Key,
        guess: Guess,
        rule: impl Rule<A>,
        unheard: impl FnOnce(&Arc<Self>, Carried<A>) + Send + 'static,
    ) -> Carrying<A> {
        let mut course = Course::new(key, guess, rule);
        loop {
            let waiting = match course.next() {
                Ok(Next::Answer(carried)) => return Carrying::Now(Some(Ok(carried))),
                Ok(Next::Ask(asking)) => asking.send(self),
                Err(error) => return Carrying::Now(Some(Err(error))),
            };
            match waiting.poll_now(self) {
                Ok(heard) => {
                    if let Err(error) = course.hear(heard) {
                        return Carrying::Now(Some(Err(error)));
                    }
                }
                Err(waiting) => {
                    let following = course.follow(Arc::clone(self), waiting);
                    let inner = Arc::clone(self);
                    let unheard = move |carried| unheard(&inner, carried);
                    return Carrying::Later(Box::pin(until_heard(following, unheard)));
                }
            }
        }
    }
}

/// An ask that is answered already, or on its way.
pub(super) enum Carrying<A> {
    Now(Option<Result<Carried<A>>>),
    Later(Pin<Box<dyn Future<Output = Result<Carried<A>>> + Send>>),
}

impl<A: Unpin> Future for Carrying<A> {
    type Output = Result<Carried<A>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Later(answer) => answer.as_mut().poll(context),
        }
    }
}

/// One ask on its way.
struct Course<A, R> {
    key: Key,
    rule: R,
    seen: Option<Seen>,
    answered: Option<Carried<A>>,
    tries: u32,
    pauses: std::slice::Iter<'static, Duration>,
    doubt: Doubt,
    pause: Option<Duration>,
}

/// What comes next on a course.
enum Next<A> {
    Answer(Carried<A>),
    Ask(Asking<A>),
}

/// What is asked of the store.
enum Asking<A> {
    Look(Key),
    Swap(Swap, A),
    Pause(Duration),
}

/// What is waited for.
enum Waiting<A> {
    Look(Reply<Vec<Option<Record>>>),
    Swap(Sent, A),
    Pause(Duration),
}

/// What was heard.
enum Heard<A> {
    Looked(Result<Answer<Vec<Option<Record>>>>),
    Told(Result<Told>, A),
    Paused,
}

impl<A> Asking<A> {
    fn send(self, inner: &Inner) -> Waiting<A> {
        match self {
            Self::Look(key) => Waiting::Look(inner.store.load(vec![key.id()])),
            Self::Swap(swap, answer) => Waiting::Swap(inner.batcher.send(swap), answer),
            Self::Pause(pause) => Waiting::Pause(pause),
        }
    }
}

impl<A> Waiting<A> {
    /// What the store answers at once, or what is still to be waited for.
    fn poll_now(self, inner: &Inner) -> std::result::Result<Heard<A>, Self> {
        match self {
            Self::Look(mut reply) => match poll_now(reply.as_mut()) {
                Poll::Ready(looked) => Ok(Heard::Looked(looked)),
                Poll::Pending => Err(Self::Look(reply)),
            },
            Self::Swap(sent, answer) => match sent.poll_now(&inner.batcher) {
                Ok(told) => Ok(Heard::Told(told, answer)),
                Err(sent) => Err(Self::Swap(sent, answer)),
            },
            Self::Pause(pause) => Err(Self::Pause(pause)),
        }
    }

    async fn heard(self, inner: &Inner) -> Heard<A> {
        match self {
            Self::Look(reply) => Heard::Looked(reply.await),
            Self::Swap(sent, answer) => Heard::Told(sent.told(&inner.batcher).await, answer),
            Self::Pause(pause) => {
                tokio::time::sleep(pause).await;
                Heard::Paused
            }
        }
    }
}

impl<A: Send + 'static, R: Rule<A>> Course<A, R> {
    fn new(key: Key, guess: Guess, rule: R) -> Self {
        let seen = match guess {
            Guess::Absent => Some(Seen::guessed(None)),
            Guess::Unchanged(record) => Some(Seen::guessed(Some(record))),
            Guess::Open => None,
        };
        Self {
            key,
            rule,
            seen,
            answered: None,
            tries: 0,
            pauses: UNKNOWN_PAUSES.iter(),
            doubt: Doubt::None,
            pause: None,
        }
    }

    async fn follow(mut self, inner: Arc<Inner>, mut waiting: Waiting<A>) -> Result<Carried<A>> {
        loop {
            let heard = waiting.heard(&inner).await;
            self.hear(heard)?;
            waiting = match self.next()? {
                Next::Answer(carried) => return Ok(carried),
                Next::Ask(asking) => asking.send(&inner),
            };
        }
    }

    fn next(&mut self) -> Result<Next<A>> {
        if let Some(carried) = self.answered.take() {
            return Ok(Next::Answer(carried));
        }
        if let Some(pause) = self.pause.take() {
            return Ok(Next::Ask(Asking::Pause(pause)));
        }
        let Some(seen) = &self.seen else { return Ok(Next::Ask(Asking::Look(self.key.clone()))) };
        let Ruling { answer, write } = (self.rule)(seen.record.as_deref(), seen.now);
        let Some(write) = write else {
            // What was only guessed has to be seen before it may be answered.
            let seen = self.seen.take().filter(|seen| seen.by == By::Store);
            return Ok(match seen {
                Some(Seen { record, now, cost, .. }) => Next::Answer(Carried { answer, record, now, cost }),
                None => Next::Ask(Asking::Look(self.key.clone())),
            });
        };
        self.tries = self.tries.saturating_add(1);
        if self.tries > STALE_TRIES_MAX {
            return Err(contended());
        }
        let expected = seen.record.as_ref().map(|record| record.version);
        Ok(Next::Ask(Asking::Swap(Swap { expected, next: write.next, keep: write.keep }, answer)))
    }

    fn hear(&mut self, heard: Heard<A>) -> Result<()> {
        match heard {
            Heard::Looked(Ok(Answer { now, value })) => {
                self.see(value.into_iter().next().flatten().map(Arc::new), now, Cost::RoundTrip)
            }
            Heard::Told(Ok(Told { answer: Answer { now, value }, cost }), answer) => match value {
                SwapReply::Swapped(record) => {
                    self.answered = Some(Carried { answer, record: Some(record), now, cost });
                    Ok(())
                }
                SwapReply::Stale(record) => self.see(record, now, cost),
                SwapReply::Full => Err(full()),
            },
            // Once a reply was lost, a later "nothing happened" speaks only of the later swap.
            Heard::Told(Err(error), _) | Heard::Looked(Err(error)) => {
                if self.doubt == Doubt::None && error.kind() != ErrorKind::Unknown {
                    return Err(error);
                }
                self.doubt = Doubt::Some;
                // Then the same again: if the first swap took, this one is stale, and the record that comes back
                // carries this caller's own permit id.
                self.pause = Some(*self.pauses.next().ok_or_else(|| unknown(error))?);
                Ok(())
            }
            Heard::Paused => Ok(()),
        }
    }

    fn see(&mut self, record: Option<Arc<Record>>, now: Timestamp, cost: Cost) -> Result<()> {
        // A digest collision, or a store that mixed up its records, must never pass for the caller's own record.
        if record.as_ref().is_some_and(|record| record.key != self.key) {
            let key = &self.key;
            let message = format!("the store handed back another key's record for {key:?}; check the store");
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        self.seen = Some(Seen { record, now, by: By::Store, cost });
        Ok(())
    }
}

/// A record, and how it is known.
struct Seen {
    record: Option<Arc<Record>>,
    now: Timestamp,
    by: By,
    cost: Cost,
}

#[derive(PartialEq)]
enum By {
    Guess,
    Store,
}

impl Seen {
    /// What the caller takes for granted. Its `now` is the last one it knows of: too early at worst, which lets
    /// nothing lapse that has not.
    fn guessed(record: Option<Arc<Record>>) -> Self {
        let now = record.as_ref().map_or(Timestamp::UNSTAMPED, |record| record.changed_at);
        Self { record, now, by: By::Guess, cost: Cost::Nothing }
    }
}

/// Whether an earlier swap of this ask may have taken without anybody hearing of it.
#[derive(PartialEq)]
enum Doubt {
    None,
    Some,
}

fn unknown(error: Error) -> Error {
    let message =
        "the store's replies were lost, so nobody knows whether it took; ask again with the same permit";
    Error::new(ErrorKind::Unknown, message).caused_by(error)
}

fn contended() -> Error {
    Error::new(ErrorKind::Unavailable, "other callers kept writing this record first; ask again")
}

fn full() -> Error {
    Error::new(
        ErrorKind::Full,
        "the store is at its bound and takes no new record; sweep it, raise the bound, or shorten retention",
    )
}
