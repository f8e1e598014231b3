//! One connection to the server, and every question it is asked.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Value, cmd, pipe};
use semel::machine::offset::Position;

use crate::builder::Config;
use crate::error::Failure;
use crate::message::{Entry, EntryId};
use crate::reply;

/// What the server answered, or why it did not.
pub(crate) type Answer<T> = std::result::Result<T, Failure>;

/// How many entries one command acknowledges.
const ACKNOWLEDGED_AT_ONCE: usize = 1_000;

/// A connection that reads one stream in one group.
#[derive(Debug)]
pub(crate) struct Connection {
    config: Arc<Config>,
    redis: MultiplexedConnection,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(config: &Arc<Config>) -> Answer<Self> {
        // How long an answer may take is decided question by question: some wait for news.
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.reply_within))
            .set_response_timeout(None);
        let opened = config.client.get_multiplexed_async_connection_with_config(&settings).await;
        let redis = opened.map_err(|error| Failure::unreached(&error))?;
        Ok(Self { config: Arc::clone(config), redis })
    }

    /// Makes the group, and the stream with it, if they are not there.
    pub(crate) async fn make_group(&mut self) -> Answer<()> {
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(&*self.config.stream).arg(&*self.config.group).arg("0").arg("MKSTREAM");
        match self.ask(&make, Duration::ZERO).await {
            Err(failure) if failure.code() == Some("BUSYGROUP") => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    /// Entries that nobody of the group has read, when there are any; none after this long.
    pub(crate) async fn read_new(&mut self, most: usize, wait: Duration) -> Answer<Vec<Entry>> {
        let mut read = self.read(most);
        // Not to wait at all means to wait for ever.
        read.arg("BLOCK").arg(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        read.arg("STREAMS").arg(&*self.config.stream).arg(">");
        let mut entries = entries_of_stream(&self.ask(&read, wait).await?)?;
        for entry in &mut entries {
            entry.deliveries = Some(1);
        }
        Ok(entries)
    }

    /// Entries behind this one that this consumer has read, and not acknowledged.
    pub(crate) async fn read_own(&mut self, after: EntryId, most: usize) -> Answer<Vec<Entry>> {
        let mut read = self.read(most);
        read.arg("STREAMS").arg(&*self.config.stream).arg(after.to_string());
        entries_of_stream(&self.ask(&read, Duration::ZERO).await?)
    }

    /// Takes entries that lie with a reader for too long, from this id on; and says where to go on.
    pub(crate) async fn claim(&mut self, from: EntryId, most: usize) -> Answer<(EntryId, Vec<Entry>)> {
        let idle_ms = u64::try_from(self.config.claim_idle.as_millis()).unwrap_or(u64::MAX);
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&*self.config.stream).arg(&*self.config.group).arg(&*self.config.consumer).arg(idle_ms);
        claim.arg(from.to_string()).arg("COUNT").arg(most);
        let answer = self.ask(&claim, Duration::ZERO).await?;
        let parts = || match reply::list(&answer)? {
            [next, entries, ..] => Some((reply::id(next)?, reply::entries(entries)?)),
            _ => None,
        };
        parts().ok_or_else(|| Failure::nonsense("XAUTOCLAIM told no entries"))
    }

    /// Fills in how often these were delivered; they are this consumer's, and in order.
    pub(crate) async fn count_deliveries(&mut self, entries: &mut [Entry]) -> Answer<()> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let mut pending = cmd("XPENDING");
        pending
            .arg(&*self.config.stream)
            .arg(&*self.config.group)
            .arg(first.id.to_string())
            .arg(last.id.to_string());
        pending.arg(entries.len()).arg(&*self.config.consumer);
        let answer = self.ask(&pending, Duration::ZERO).await?;
        for row in reply::list(&answer).unwrap_or_default() {
            let Some([id, _, _, count]) = reply::list(row) else { continue };
            let of = reply::id(id);
            let found = entries.iter_mut().find(|entry| Some(entry.id) == of);
            if let Some(entry) = found {
                entry.deliveries = reply::number(count);
            }
        }
        Ok(())
    }

    /// These need not be delivered to the group again.
    pub(crate) async fn acknowledge(&mut self, ids: &[EntryId]) -> Answer<()> {
        for some in ids.chunks(ACKNOWLEDGED_AT_ONCE) {
            let mut acknowledge = cmd("XACK");
            acknowledge.arg(&*self.config.stream).arg(&*self.config.group);
            for id in some {
                acknowledge.arg(id.to_string());
            }
            self.ask(&acknowledge, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Up to where the whole group has acknowledged everything.
    pub(crate) async fn floor(&mut self) -> Answer<Option<EntryId>> {
        let mut both = pipe();
        // In one step: what somebody reads between the two would count as acknowledged.
        both.atomic().cmd("XINFO").arg("GROUPS").arg(&*self.config.stream);
        both.cmd("XPENDING").arg(&*self.config.stream).arg(&*self.config.group);
        let asked = tokio::time::timeout(self.config.reply_within, both.query_async(&mut self.redis)).await;
        let (groups, pending): (Value, Value) =
            asked.map_err(|_| Failure::late())?.map_err(|error| Failure::refused(&error))?;
        let delivered =
            self.group_in(&groups).and_then(|group| reply::id(reply::under(group, "last-delivered-id")?));
        let delivered = delivered.ok_or_else(|| Failure::nonsense("the group is not among the stream's"))?;
        let pending = reply::list(&pending).and_then(|pending| reply::id(pending.get(1)?));
        let floor = match pending {
            None => delivered.position(),
            Some(first) => Position::new(first.position().get().saturating_sub(1)),
        };
        Ok(Some(EntryId::at(floor)).filter(|floor| !floor.is_start()))
    }

    /// How many entries nobody of the group has read, where the server knows.
    pub(crate) async fn lag(&mut self) -> Answer<Option<u64>> {
        let mut groups = cmd("XINFO");
        groups.arg("GROUPS").arg(&*self.config.stream);
        let groups = self.ask(&groups, Duration::ZERO).await?;
        Ok(self.group_in(&groups).and_then(|group| reply::number(reply::under(group, "lag")?)))
    }

    fn group_in<'a>(&self, groups: &'a Value) -> Option<&'a Value> {
        let is_ours = |group: &&Value| {
            reply::under(group, "name").and_then(reply::bytes) == Some(self.config.group.as_bytes())
        };
        reply::list(groups)?.iter().find(is_ours)
    }

    fn read(&self, most: usize) -> Cmd {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&*self.config.group).arg(&*self.config.consumer).arg("COUNT").arg(most);
        read
    }

    /// Sends a command and waits for its answer; longer by `wait`, for commands on which the server itself waits.
    async fn ask(&mut self, cmd: &Cmd, wait: Duration) -> Answer<Value> {
        let within = self.config.reply_within.saturating_add(wait);
        let answer = tokio::time::timeout(within, cmd.query_async(&mut self.redis)).await;
        answer.map_err(|_| Failure::late())?.map_err(|error| Failure::refused(&error))
    }
}

/// Entries of the one stream that was read: `[[stream, entries]]`, or nothing.
fn entries_of_stream(answer: &Value) -> Answer<Vec<Entry>> {
    if *answer == Value::Nil {
        return Ok(Vec::new());
    }
    let entries = || match reply::list(answer)? {
        [] => Some(Vec::new()),
        [stream] => reply::entries(reply::list(stream)?.get(1)?),
        _ => None,
    };
    entries().ok_or_else(|| Failure::nonsense("XREADGROUP told no entries"))
}
