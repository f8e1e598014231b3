//! Swaps: one call of the script for a batch, or in a cluster one for each tag, all sent at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::Value;
use semel::clock::Timestamp;
use semel::record::{Keep, Version};
use semel::store::{Answer, Swap, SwapReplies, SwapReply, Swaps};
use semel::{Error, ErrorKind, RecordId, Result};

use crate::connect::{Command, Purpose};
use crate::error::{Failure, damaged};
use crate::load;
use crate::names::Tag;
use crate::reply::{self, ReplyValue};
use crate::row::{self, Asked};
use crate::script::{self, SwapRow};
use crate::store::{Inner, cacheable};

/// The longest keep that is counted, about 140 years: a sum with a moment must stay exact on the server. Longer ones are
/// for ever.
const KEEP_MICROS_MAX: u64 = 1 << 52;
/// The longest record: Redis holds half a gigabyte under one key.
const DRAFT_BYTES_MAX: usize = 512 * 1_024 * 1_024 - 16;

/// How many ids one command speaks of at most.
const IDS_A_COMMAND: usize = 1_024;

pub(crate) async fn swap(inner: Arc<Inner>, batch: Swaps) -> Result<Answer<SwapReplies>> {
    if batch.is_empty() {
        let (_, now) = inner.servers.send(&[], Purpose::Read).await?;
        return Ok(cacheable(now, SwapReplies::new()));
    }
    let mut pending = Pending::new(&inner, batch);
    if let Some(refusal) = inner.settings.refusal() {
        pending.refuse_new_claims(&refusal).await?;
    }
    let open = pending.open();
    if open.is_empty() {
        return pending.answered();
    }
    let rows = open.iter().map(|(_, swap)| row_of(&inner, swap)).collect::<Result<Vec<_>>>()?;
    let is_cluster = inner.servers.is_cluster();
    let groups = groups(is_cluster, open.iter().map(|(_, swap)| swap.id()));
    let command = |(tag, at): &(Tag, Vec<usize>)| {
        let rows: Vec<_> = at.iter().filter_map(|at| rows.get(*at)).collect();
        let (counter, due) = if is_cluster {
            (inner.names.counter_of(*tag), Some(inner.names.due(*tag)))
        } else {
            (inner.names.counter(), None)
        };
        Command { tag: *tag, cmd: script::swap(&counter, rows.into_iter(), due) }
    };
    let commands: Vec<_> = groups.iter().map(command).collect();
    let places: Vec<usize> = open.iter().map(|(at, _)| *at).collect();
    drop((rows, open));
    let (answers, _) = inner.servers.send(&commands, Purpose::Write).await?;
    drop(commands);
    for ((_, at), answer) in groups.into_iter().zip(answers) {
        let at: Vec<_> = at.into_iter().filter_map(|at| places.get(at).copied()).collect();
        pending.read(&at, answer)?;
    }
    pending.answered()
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
        keep: micros(swap.keep),
        draft,
    })
}

/// The keep in microseconds; empty if it is for ever, or too long to be counted.
fn micros(keep: Keep) -> String {
    match keep {
        Keep::For(span) => match u64::try_from(span.as_micros()) {
            Ok(micros) if micros < KEEP_MICROS_MAX => micros.to_string(),
            _ => String::new(),
        },
        Keep::Forever => String::new(),
    }
}

/// Which of the ids may be asked about in one command: as many as keep the server busy for a few milliseconds only, and in
/// a cluster those of one tag. The order of one id's asks stays.
pub(crate) fn groups(
    is_cluster: bool,
    ids: impl ExactSizeIterator<Item = RecordId>,
) -> Vec<(Tag, Vec<usize>)> {
    if !is_cluster {
        let all: Vec<_> = (0..ids.len()).collect();
        return all.chunks(IDS_A_COMMAND).map(|some| (Tag::FIRST, some.to_vec())).collect();
    }
    let mut groups: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (at, id) in ids.enumerate() {
        groups.entry(Tag::of(&id).index()).or_default().push(at);
    }
    groups.into_iter().map(|(index, at)| (Tag::at(index), at)).collect()
}

/// The swaps of a batch, and the answers to them so far.
struct Pending<'a> {
    inner: &'a Inner,
    batch: Vec<Option<Swap>>,
    replies: Vec<Option<SwapReply>>,
    now: Timestamp,
}

impl<'a> Pending<'a> {
    fn new(inner: &'a Inner, batch: Swaps) -> Self {
        let replies = batch.iter().map(|_| None).collect();
        Self { inner, batch: batch.into_iter().map(Some).collect(), replies, now: Timestamp::default() }
    }

    /// The swaps that have no answer yet, and their places in the batch.
    fn open(&self) -> Vec<(usize, &Swap)> {
        let swaps = self.batch.iter().enumerate();
        swaps.filter_map(|(at, swap)| swap.as_ref().map(|swap| (at, swap))).collect()
    }

    /// Answers the swaps that would grant a run. A record that is there is still shown: replays go on.
    async fn refuse_new_claims(&mut self, refusal: &Error) -> Result<()> {
        let grants = |swap: &Option<Swap>| swap.as_ref().is_some_and(|swap| swap.next.grants_run());
        let refused: Vec<usize> =
            (0..).zip(&self.batch).filter(|(_, swap)| grants(swap)).map(|(at, _)| at).collect();
        let ids: Vec<_> =
            refused.iter().filter_map(|at| self.batch.get(*at)?.as_ref().map(Swap::id)).collect();
        let (found, now) = load::fetch(self.inner, &ids).await?;
        self.now = self.now.max(now);
        for (at, found) in refused.into_iter().zip(found) {
            let Some(swap) = self.batch.get_mut(at).and_then(Option::take) else { continue };
            let reply = match found {
                Err(why) => SwapReply::Damaged(why),
                Ok(found) if found.as_ref().map(|found| found.version) != swap.expected => {
                    SwapReply::Stale(found)
                }
                Ok(_) => SwapReply::Refused(refusal.clone()),
            };
            if let Some(place) = self.replies.get_mut(at) {
                *place = Some(reply);
            }
        }
        Ok(())
    }

    /// The answer, once every swap has one.
    fn answered(self) -> Result<Answer<SwapReplies>> {
        let asked = self.replies.len();
        let value: SwapReplies = self.replies.into_iter().flatten().collect();
        if value.len() == asked {
            Ok(cacheable(self.now, value))
        } else {
            Err(Failure::unexpected_reply("too few answers to swaps").into())
        }
    }

    /// One call of the script: its now, then an answer for each of its swaps.
    fn read(&mut self, at: &[usize], answer: Value) -> Result<()> {
        let unexpected = || Error::from(Failure::unexpected_reply("the script for swaps"));
        let mut parts = reply::list(answer, "the script for swaps")?.into_iter();
        let now = parts.next().and_then(reply::number).map(Timestamp::from_micros).ok_or_else(unexpected)?;
        self.now = self.now.max(now);
        for (at, part) in at.iter().zip(parts) {
            let swap = self.batch.get_mut(*at).and_then(Option::take).ok_or_else(unexpected)?;
            let reply = swap_reply(self.inner, swap, now, part).ok_or_else(unexpected)?;
            if let Some(place) = self.replies.get_mut(*at) {
                *place = Some(reply);
            }
        }
        Ok(())
    }
}

/// What became of one swap; `None` if the reply is not one of the script's.
fn swap_reply(inner: &Inner, swap: Swap, now: Timestamp, part: Value) -> Option<SwapReply> {
    let unreadable = |why| SwapReply::Damaged(damaged(&inner.names.record(&swap.id()), why));
    Some(match part.into() {
        // The script's mark for a full memory.
        ReplyValue::Number(0) => SwapReply::Full,
        ReplyValue::Number(version) => SwapReply::Swapped(swap.next.stamp(Version::new(version), now)),
        ReplyValue::Bytes(found) => match row::record(&found, Asked::Key(swap.next.key())) {
            Ok(record) => SwapReply::Stale(Some(record)),
            Err(why) => unreadable(why),
        },
        ReplyValue::Nothing => SwapReply::Stale(None),
        // The script's mark for a key that is not a string.
        ReplyValue::Many(why) => {
            let why = why.into_iter().next().and_then(reply::text)?;
            unreadable(Error::new(ErrorKind::Corrupt, format!("{why}; inspect it before anything else")))
        }
        ReplyValue::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_keep_that_cannot_be_counted_is_for_ever() {
        let micros = |span| micros(Keep::For(span));
        assert_eq!(micros(Duration::ZERO), "0");
        assert_eq!(micros(Duration::from_micros(1_000_001)), "1000001");
        assert_eq!(micros(Duration::from_micros(KEEP_MICROS_MAX)), "");
        assert_eq!(micros(Duration::MAX), "");
    }

    #[test]
    fn a_batch_is_split_by_tag_in_a_cluster_and_else_by_length() {
        let id = |first: u8| RecordId::from_bytes([first; 32]);
        let ids = [id(0xff), id(0), id(0xff), id(7)];
        let one = groups(false, ids.into_iter());
        assert_eq!(one, [(Tag::FIRST, vec![0, 1, 2, 3])]);
        let many = groups(false, vec![id(1); IDS_A_COMMAND + 1].into_iter());
        assert_eq!(many[1], (Tag::FIRST, vec![IDS_A_COMMAND]));
        let split = groups(true, ids.into_iter());
        assert_eq!(split, [(Tag::at(0), vec![1]), (Tag::at(0x070), vec![3]), (Tag::at(0xfff), vec![0, 2])]);
    }
}
