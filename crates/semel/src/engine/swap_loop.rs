//! From ruling to swap and back: the one loop of every ask, without any I/O.
//!
//! The loop says what it needs ([`next`](SwapLoop::next)) and takes in the reply ([`hear`](SwapLoop::hear)). The
//! engine drives it with batches, a PostgreSQL transaction with statements, and an operator's action with single calls.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, RecordId};
use crate::machine::Ruling;
use crate::record::{PermitId, Record};
use crate::store::{Answer, Caching, Loaded, Swap, SwapReply};

/// How often an ask starts over because another caller wrote first. Each time another caller got on, so this is
/// only reached if one key is fought over for ever.
const STALE_MAX: u32 = 1_000;
/// How long to wait before asking again after a lost reply: short enough to stay within a lease.
const UNKNOWN_PAUSES: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(50), Duration::from_millis(250)];

/// One ask, from its first ruling to the answer that may be given.
///
/// ```
/// use semel::machine::claim::{Claimed, claim};
/// # use semel::machine::claim::{Ask, Probe, Reentry};
/// use semel::store::{MemoryStore, Store};
/// use semel::swap_loop::{Guess, Heard, Next, SwapLoop};
/// # use semel::{Key, Lapse, LEASE_DEFAULT, RETENTION_DEFAULT, record::PermitId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> semel::Result<()> {
/// # let key = Key::new("charge", "order-1042")?;
/// # let ask = Ask { key: key.clone(), fingerprint: None, label: None, permit_id: PermitId::new(7), owner: "me".into(),
/// #     reentry: Reentry::Refused, lease: LEASE_DEFAULT, retention: RETENTION_DEFAULT, lapse: Lapse::Rerun,
/// #     attempts_max: None, first_event: None, probe: Probe::None };
/// let store = MemoryStore::new();
/// let mut swap_loop = SwapLoop::new(key, Guess::Absent, move |found, now| claim(found, &ask, now));
/// let settled = loop {
///     match swap_loop.next()? {
///         Next::Load(id) => swap_loop.hear(Heard::loaded(store.load(vec![id]).await))?,
///         Next::Swap(swap) => swap_loop.hear(Heard::swapped(store.swap([swap].into()).await))?,
///         Next::Pause(pause) => tokio::time::sleep(pause).await,
///         Next::Answer(settled) => break settled,
///     }
/// };
/// assert_eq!(settled.answer, Claimed::Run);
/// # Ok(())
/// # }
/// ```
pub struct SwapLoop<A, R> {
    key: Key,
    rule: R,
    seen: Option<Seen>,
    /// What may be answered once the swap in flight has taken.
    pending: Option<A>,
    settled: Option<Settled<A>>,
    stale: u32,
    pause: Option<Duration>,
    lost_replies: usize,
    after_lost_reply: AfterLostReply,
    permit_id: Option<PermitId>,
}

/// A rule that is made at run time.
pub type BoxedRule<A> = Box<dyn FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send>;
/// A swap loop that is handed to a caller who drives it.
pub type BoxedSwapLoop<A> = SwapLoop<A, BoxedRule<A>>;

/// What the caller takes for granted before it asks. A wrong guess costs a round trip and nothing else.
#[derive(Clone, Debug)]
pub enum Guess {
    /// There is no record.
    Absent,
    /// The record is as this caller last saw it.
    Unchanged(Arc<Record>),
    /// The store handed this record out at this moment.
    Loaded(Option<Arc<Record>>, Timestamp),
    /// It could be anything: load it first.
    Unknown,
}

/// What comes next.
#[derive(Debug)]
pub enum Next<A> {
    /// Load this record, and [`hear`](SwapLoop::hear) what was found.
    Load(RecordId),
    /// Send this swap, and [`hear`](SwapLoop::hear) what became of it.
    Swap(Swap),
    /// Wait so long, then ask for what comes next.
    Pause(Duration),
    /// The ask is answered.
    Answer(Settled<A>),
}

/// The reply to a [`Next::Load`] or a [`Next::Swap`].
#[derive(Debug)]
pub enum Heard {
    /// The record was loaded, or not.
    Loaded(Result<Answer<Loaded>>),
    /// The swap was answered, or not.
    Swapped(Result<Answer<SwapReply>>),
    /// The swap lost a race and the store cannot say to whom: load the record.
    LostRace,
}

/// An answer that may be given: whatever had to be written is.
#[derive(Clone, Debug)]
pub struct Settled<A> {
    /// What the machine ruled.
    pub answer: A,
    /// The record as it now is; `None` if there is none.
    pub record: Option<Arc<Record>>,
    /// The store's now that the ruling was made or written at.
    pub now: Timestamp,
    /// Whether the answer wrote the record, or only read it.
    pub effect: Effect,
    /// Whether the record may be kept in memory.
    pub caching: Caching,
}

/// Whether a ruling changed the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was swapped in.
    Written,
    /// The record stayed as it was.
    Unchanged,
}

/// What to do after a reply was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterLostReply {
    /// Ask again: the rule recognises what it wrote itself.
    AskAgain,
    /// Give up: asking again could write the same thing twice.
    GiveUp,
}

impl Heard {
    /// The reply to a store's `load` of one id.
    pub fn loaded(answer: Result<Answer<Vec<Loaded>>>) -> Self {
        Self::Loaded(answer.and_then(|answer| only(answer.for_each_of(1)?, Vec::pop)))
    }

    /// The reply to a store's `swap` of one record.
    pub fn swapped(answer: Result<Answer<crate::store::SwapReplies>>) -> Self {
        Self::Swapped(answer.and_then(|answer| only(answer.for_each_of(1)?, smallvec::SmallVec::pop)))
    }
}

/// The one answer that there must be.
fn only<T, V>(answer: Answer<V>, pop: impl FnOnce(&mut V) -> Option<T>) -> Result<Answer<T>> {
    let Answer { now, mut value, caching } = answer;
    let lost = || Error::new(ErrorKind::Unknown, "the store gave no answer; ask again");
    Ok(Answer::new(now, pop(&mut value).ok_or_else(lost)?).caching(caching))
}

impl<A, R: FnMut(Option<&Record>, Timestamp) -> Ruling<A>> SwapLoop<A, R> {
    /// The loop for an ask that `rule` decides.
    #[inline]
    pub fn new(key: Key, guess: Guess, rule: R) -> Self {
        let seen = match guess {
            Guess::Absent => Some(Seen::guessed(None)),
            Guess::Unchanged(record) => Some(Seen::guessed(Some(record))),
            Guess::Loaded(record, now) => {
                Some(Seen { record, now, by: By::Store, caching: Caching::Refused })
            }
            Guess::Unknown => None,
        };
        Self {
            key,
            rule,
            seen,
            pending: None,
            settled: None,
            stale: 0,
            pause: None,
            lost_replies: 0,
            after_lost_reply: AfterLostReply::AskAgain,
            permit_id: None,
        }
    }

    /// The same loop, whose `Unknown` error names the permit to ask again with.
    #[must_use]
    #[inline]
    pub fn permit_id(mut self, permit_id: PermitId) -> Self {
        self.permit_id = Some(permit_id);
        self
    }

    /// The same loop, which gives up after a lost reply: for rules that would count the same thing twice.
    #[must_use]
    pub fn never_twice(mut self) -> Self {
        self.after_lost_reply = AfterLostReply::GiveUp;
        self
    }

    /// Whose record is asked for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What to do next.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: each answer has to be heard")]
    pub fn next(&mut self) -> Result<Next<A>> {
        if let Some(settled) = self.settled.take() {
            return Ok(Next::Answer(settled));
        }
        if let Some(pause) = self.pause.take() {
            return Ok(Next::Pause(pause));
        }
        let Some(seen) = &self.seen else { return Ok(Next::Load(self.key.id())) };
        let Ruling { answer, write } = (self.rule)(seen.record.as_deref(), seen.now);
        let Some(write) = write else {
            // What was only guessed has to be seen before it may be answered.
            return Ok(match self.seen.take().filter(|seen| seen.by == By::Store) {
                Some(Seen { record, now, caching, .. }) => {
                    Next::Answer(Settled { answer, record, now, effect: Effect::Unchanged, caching })
                }
                None => Next::Load(self.key.id()),
            });
        };
        if self.stale > STALE_MAX {
            return Err(self.contended());
        }
        let expected = seen.record.as_ref().map(|record| record.version);
        self.pending = Some(answer);
        Ok(Next::Swap(Swap { expected, next: write.next, keep: write.keep }))
    }

    /// Takes in the reply. An error is the end of the ask.
    pub fn hear(&mut self, heard: Heard) -> Result<()> {
        match heard {
            Heard::Loaded(Ok(Answer { now, value, caching })) => {
                self.see(value.map_err(|why| self.refusal(why))?, now, caching)
            }
            Heard::Swapped(Ok(Answer { now, value, caching })) => match (value, self.pending.take()) {
                (SwapReply::Swapped(record), Some(answer)) => {
                    let (record, effect) = (Some(record), Effect::Written);
                    self.settled = Some(Settled { answer, record, now, effect, caching });
                    Ok(())
                }
                (SwapReply::Swapped(_), None) => Err(out_of_turn()),
                (SwapReply::Stale(record), _) => {
                    self.stale = self.stale.saturating_add(1);
                    self.see(record, now, caching)
                }
                (SwapReply::Full, _) => Err(self.refusal(full())),
                (SwapReply::Damaged(why) | SwapReply::Refused(why), _) => Err(self.refusal(why)),
            },
            Heard::LostRace => {
                self.stale = self.stale.saturating_add(1);
                self.seen = None;
                if self.stale > STALE_MAX { Err(self.contended()) } else { Ok(()) }
            }
            Heard::Loaded(Err(error)) => self.lose_reply(error, AfterLostReply::AskAgain),
            Heard::Swapped(Err(error)) => self.lose_reply(error, self.after_lost_reply),
        }
    }

    fn lose_reply(&mut self, error: Error, then: AfterLostReply) -> Result<()> {
        // Once a reply was lost, a later "nothing happened" speaks only of the later swap.
        if self.lost_replies == 0 && error.kind() != ErrorKind::Unknown {
            return Err(error);
        }
        let pause = UNKNOWN_PAUSES.get(self.lost_replies).filter(|_| !error.is_overdue());
        self.lost_replies = self.lost_replies.saturating_add(1);
        match (pause, then) {
            // Then the same again: if the first swap took, this one is stale, and the record that comes back
            // carries this caller's own permit id.
            (Some(pause), AfterLostReply::AskAgain) => {
                self.pause = Some(*pause);
                Ok(())
            }
            _ => Err(self.unknown(error)),
        }
    }

    fn see(&mut self, record: Option<Arc<Record>>, now: Timestamp, caching: Caching) -> Result<()> {
        // A digest collision, or a store that mixed up its records, must never pass for the caller's own record.
        if record.as_ref().is_some_and(|record| record.key != self.key) {
            let key = &self.key;
            let message = format!("the store handed back another key's record for {key:?}; check the store");
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        self.seen = Some(Seen { record, now, by: By::Store, caching });
        Ok(())
    }

    fn contended(&self) -> Error {
        let message = "other callers kept writing this record first; ask again";
        self.refusal(Error::new(ErrorKind::Unavailable, message))
    }

    /// The error of an ask that the store refused. Of a swap whose reply was lost before, a refusal says nothing.
    fn refusal(&self, error: Error) -> Error {
        if self.lost_replies == 0 { error } else { self.unknown(error) }
    }

    fn unknown(&self, error: Error) -> Error {
        let message = "the store's replies were lost, so it is unknown whether the call took effect; ask again \
                       with the same permit id";
        let unknown = Error::new(ErrorKind::Unknown, message).caused_by(error);
        match self.permit_id {
            Some(permit_id) => unknown.with_permit_id(permit_id),
            None => unknown,
        }
    }
}

/// A record, and how it is known.
struct Seen {
    record: Option<Arc<Record>>,
    now: Timestamp,
    by: By,
    caching: Caching,
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
        Self { record, now, by: By::Guess, caching: Caching::Refused }
    }
}

fn out_of_turn() -> Error {
    Error::new(ErrorKind::Corrupt, "the store swapped a record that was not asked for; check the store")
}

fn full() -> Error {
    Error::new(
        ErrorKind::Full,
        "the store is at its bound and takes no new record; sweep it, raise the bound, or shorten retention",
    )
}
