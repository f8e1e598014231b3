//! Swaps: one call of the script for a batch, or in a cluster one a tag, all on their way at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use semel::clock::Timestamp;
use semel::record::{Keep, Version};
use semel::store::{Answer, Swap, SwapReply};
use semel::{Error, ErrorKind, RecordId, Result};

use crate::connect::{Command, Purpose};
use crate::error::Trouble;
use crate::names::Tag;
use crate::reply::{self, Said};
use crate::row;
use crate::script::{self, SwapRow};
use crate::store::Inner;

/// The longest keep that is counted, about 140 years: a sum with a moment must stay exact on the server. Longer ones are
/// for ever.
const KEEP_MICROS_MAX: u64 = 1 << 52;
/// The longest record: Redis holds half a gigabyte under one key.
const DRAFT_BYTES_MAX: usize = 512 * 1_024 * 1_024 - 16;

pub(crate) async fn swap(inner: Arc<Inner>, batch: Vec<Swap>) -> Result<Answer<Vec<SwapReply>>> {
    if batch.is_empty() {
        let (_, now) = inner.servers.send(&[], Purpose::Read).await?;
        return Ok(Answer { now, value: Vec::new() });
    }
    let rows = batch.iter().map(|swap| row_of(&inner, swap)).collect::<Result<Vec<_>>>()?;
    let is_cluster = inner.servers.is_cluster();
    let groups = groups(is_cluster, batch.iter().map(Swap::id));
    let command = |(tag, at): &(Tag, Vec<usize>)| {
        let rows: Vec<_> = at.iter().filter_map(|at| rows.get(*at)).collect();
        let beside = if is_cluster { inner.names.beside(*tag).to_vec() } else { Vec::new() };
        Command { tag: *tag, cmd: script::swap(rows.into_iter(), &beside) }
    };
    let commands: Vec<_> = groups.iter().map(command).collect();
    drop(rows);
    let (answers, _) = inner.servers.send(&commands, Purpose::Write).await?;
    drop(commands);
    Heard::new(batch).hear_all(groups, answers)
}

fn row_of(inner: &Inner, swap: &Swap) -> Result<SwapRow> {
    let draft = row::draft(&swap.next)?;
    if draft.len() > DRAFT_BYTES_MAX {
        let message = "the record is over 512 MiB, which is all that Redis takes; keep its outcome elsewhere";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(SwapRow {
        key: inner.names.record(&swap.id()),
        expected: row::expected(swap.expected),
        keep: match swap.keep {
            Keep::For(span) => micros(span).map(|micros| micros.to_string()).unwrap_or_default(),
            Keep::Forever => String::new(),
        },
        draft,
    })
}

/// The span in microseconds; `None` if it is too long to be counted.
fn micros(span: Duration) -> Option<u64> {
    u64::try_from(span.as_micros()).ok().filter(|micros| *micros < KEEP_MICROS_MAX)
}

/// Which of the ids may be asked about in one command: all of them, or in a cluster those of one tag. Their order stays.
pub(crate) fn groups(
    is_cluster: bool,
    ids: impl ExactSizeIterator<Item = RecordId>,
) -> Vec<(Tag, Vec<usize>)> {
    if !is_cluster {
        return vec![(Tag::FIRST, (0..ids.len()).collect())];
    }
    let mut groups: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (at, id) in ids.enumerate() {
        groups.entry(Tag::of(&id).index()).or_default().push(at);
    }
    groups.into_iter().map(|(index, at)| (Tag::at(index), at)).collect()
}

/// The answers that were heard so far.
struct Heard {
    batch: Vec<Option<Swap>>,
    replies: Vec<Option<SwapReply>>,
    now: Timestamp,
}

impl Heard {
    fn new(batch: Vec<Swap>) -> Self {
        let replies = batch.iter().map(|_| None).collect();
        Self { batch: batch.into_iter().map(Some).collect(), replies, now: Timestamp::default() }
    }

    fn hear_all(
        mut self,
        groups: Vec<(Tag, Vec<usize>)>,
        answers: Vec<Value>,
    ) -> Result<Answer<Vec<SwapReply>>> {
        let mut unread = None;
        for ((_, at), answer) in groups.into_iter().zip(answers) {
            if let Err(error) = self.hear(&at, answer) {
                unread = Some(error);
            }
        }
        let swapped = self.replies.iter().flatten().any(|reply| matches!(reply, SwapReply::Swapped(_)));
        if let Some(error) = unread {
            // One record that cannot be read must not say of the others that nothing happened to them.
            let message = "some of these swaps were answered with what cannot be read; ask again, one by one";
            return Err(if swapped {
                Error::new(ErrorKind::Unknown, message).caused_by(error)
            } else {
                error
            });
        }
        let asked = self.replies.len();
        let value: Vec<_> = self.replies.into_iter().flatten().collect();
        if value.len() == asked {
            Ok(Answer { now: self.now, value })
        } else {
            Err(Trouble::nonsense("too few answers to swaps").into())
        }
    }

    /// One call of the script: its now, then an answer for each of its swaps.
    fn hear(&mut self, at: &[usize], answer: Value) -> Result<()> {
        let nonsense = || Error::from(Trouble::nonsense("the script for swaps"));
        let mut parts = reply::list(answer, "the script for swaps")?.into_iter();
        let now = parts.next().and_then(reply::number).map(Timestamp::from_micros).ok_or_else(nonsense)?;
        self.now = self.now.max(now);
        let mut unread = Ok(());
        for (at, part) in at.iter().zip(parts) {
            let swap = self.batch.get_mut(*at).and_then(Option::take).ok_or_else(nonsense)?;
            let reply = match part.into() {
                Said::Number(version) => SwapReply::Swapped(swap.next.stamp(Version::new(version), now)),
                Said::Bytes(found) => match row::record(&found) {
                    Ok(record) => SwapReply::Stale(Some(record)),
                    Err(error) => {
                        unread = Err(error);
                        continue;
                    }
                },
                Said::Nothing => SwapReply::Stale(None),
                Said::Many(_) | Said::Other => return Err(nonsense()),
            };
            if let Some(place) = self.replies.get_mut(*at) {
                *place = Some(reply);
            }
        }
        unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keep_that_cannot_be_counted_is_for_ever() {
        assert_eq!(micros(Duration::from_secs(1)), Some(1_000_000));
        assert_eq!(micros(Duration::from_micros(KEEP_MICROS_MAX)), None);
        assert_eq!(micros(Duration::MAX), None);
    }

    #[test]
    fn a_batch_is_split_by_tag_in_a_cluster_only() {
        let id = |first: u8| RecordId::from_bytes([first; 32]);
        let ids = [id(0xff), id(0), id(0xff), id(7)];
        let one = groups(false, ids.into_iter());
        assert_eq!(one, [(Tag::FIRST, vec![0, 1, 2, 3])]);
        let split = groups(true, ids.into_iter());
        assert_eq!(split, [(Tag::at(0), vec![1]), (Tag::at(0x070), vec![3]), (Tag::at(0xfff), vec![0, 2])]);
    }
}
