//! The loop from ruling to swap and back, the same for every ask.

use std::time::Duration;

use super::batch::Cost;
use super::semel::Inner;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::machine::Ruling;
use crate::record::Record;
use crate::store::{Swap, SwapReply};

/// How often an ask starts over because another caller was faster. Each time somebody else got on, so this is
/// only reached if one key is fought over for ever.
const STALE_TRIES_MAX: u32 = 1_000;
/// How long to wait before asking again after a lost reply: short enough to stay within a lease.
const UNKNOWN_PAUSES: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(50), Duration::from_millis(250)];

/// An answer that may be given: whatever had to be written is.
pub(super) struct Carried<A> {
    pub(super) answer: A,
    /// The record as it now is; `None` if there is none.
    pub(super) record: Option<Record>,
    pub(super) now: Timestamp,
    pub(super) cost: Cost,
}

/// What the caller takes for granted before it asks. A wrong guess costs a round trip and nothing else.
pub(super) enum Guess {
    /// There is no record.
    Absent,
    /// The record is as this caller last saw it.
    Unchanged(Box<Record>),
    /// It could be anything: look first.
    Open,
}

impl Inner {
    /// Rules on what is found, writes what the ruling says, and starts over if somebody else wrote first.
    pub(super) async fn carry<A>(
        &self,
        key: &Key,
        guess: Guess,
        mut rule: impl FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send,
    ) -> Result<Carried<A>> {
        let mut seen = match guess {
            Guess::Absent => Seen::guessed(None),
            Guess::Unchanged(record) => Seen::guessed(Some(*record)),
            Guess::Open => self.look(key).await?,
        };
        let mut pauses = UNKNOWN_PAUSES.iter();
        let mut doubt = Doubt::None;
        for _ in 0..STALE_TRIES_MAX {
            let Ruling { answer, write } = rule(seen.record.as_ref(), seen.now);
            let Some(write) = write else {
                if seen.by == By::Guess {
                    seen = self.look(key).await?;
                    continue;
                }
                return Ok(Carried { answer, record: seen.record, now: seen.now, cost: seen.cost });
            };
            let expected = seen.record.as_ref().map(|record| record.version);
            let swap = Swap { expected, next: write.next, keep: write.keep };
            match self.batcher.swap(swap).await {
                Ok(told) => match told.answer.value {
                    SwapReply::Swapped(record) => {
                        let now = told.answer.now;
                        return Ok(Carried { answer, record: Some(record), now, cost: told.cost });
                    }
                    SwapReply::Stale(record) => {
                        seen = Seen { record, now: told.answer.now, by: By::Store, cost: told.cost };
                        same_key(key, seen.record.as_ref())?;
                    }
                    SwapReply::Full => return Err(full()),
                },
                // Once a reply was lost, a later "nothing happened" speaks only of the later swap.
                Err(error) if doubt == Doubt::Some || error.kind() == ErrorKind::Unknown => {
                    doubt = Doubt::Some;
                    let Some(pause) = pauses.next() else { return Err(unknown(error)) };
                    // Then the same swap again: if the first one took, this one is stale, and the record that
                    // comes back carries this caller's own permit id.
                    tokio::time::sleep(*pause).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "other callers kept writing this record first; ask again"))
    }

    async fn look(&self, key: &Key) -> Result<Seen> {
        let answer = self.store.load(vec![key.id()]).await?;
        let record = answer.value.into_iter().next().flatten();
        same_key(key, record.as_ref())?;
        Ok(Seen { record, now: answer.now, by: By::Store, cost: Cost::RoundTrip })
    }
}

/// A digest collision, or a store that mixed up its records, must never pass for the caller's own record.
fn same_key(key: &Key, found: Option<&Record>) -> Result<()> {
    match found {
        Some(record) if record.key != *key => Err(Error::new(
            ErrorKind::Corrupt,
            format!("the store handed back another key's record for {key:?}; check the store"),
        )),
        _ => Ok(()),
    }
}

/// A record, and how it is known.
struct Seen {
    record: Option<Record>,
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
    fn guessed(record: Option<Record>) -> Self {
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

fn full() -> Error {
    Error::new(
        ErrorKind::Full,
        "the store is at its bound and takes no new record; sweep it, raise the bound, or shorten retention",
    )
}
