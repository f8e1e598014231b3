//! What the server is asked.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value, cmd, pipe};
use semel::machine::offset::Position;

use super::config::Config;
use super::entry::{Entry, EntryId};
use super::error::Trouble;
use super::reply;

/// What was told, or what went wrong.
pub(super) type Told<T> = std::result::Result<T, Trouble>;

/// How many entries one command acknowledges.
const ACKNOWLEDGED_AT_ONCE: usize = 1_000;

impl Config {
    /// Makes the group, and the stream with it, if they are not there.
    pub(super) async fn make_group(&self, connection: &mut MultiplexedConnection) -> Told<()> {
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(&*self.stream).arg(&*self.group).arg("0").arg("MKSTREAM");
        match self.ask(connection, &make, Duration::ZERO).await {
            Err(trouble) if trouble.code() == Some("BUSYGROUP") => Ok(()),
            told => told.map(|_| ()),
        }
    }

    /// Entries that nobody of the group has read, when there are any; none after this long.
    pub(super) async fn read_new(
        &self,
        connection: &mut MultiplexedConnection,
        most: usize,
        wait: Duration,
    ) -> Told<Vec<Entry>> {
        let mut read = self.read(most);
        // Not to wait at all means to wait for ever.
        read.arg("BLOCK").arg(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        read.arg("STREAMS").arg(&*self.stream).arg(">");
        let mut entries = entries_of_stream(&self.ask(connection, &read, wait).await?)?;
        entries.iter_mut().for_each(|entry| entry.deliveries = Some(1));
        Ok(entries)
    }

    /// Entries behind this one that this consumer has read, and not acknowledged.
    pub(super) async fn read_own(
        &self,
        connection: &mut MultiplexedConnection,
        after: EntryId,
        most: usize,
    ) -> Told<Vec<Entry>> {
        let mut read = self.read(most);
        read.arg("STREAMS").arg(&*self.stream).arg(after.to_string());
        entries_of_stream(&self.ask(connection, &read, Duration::ZERO).await?)
    }

    /// Takes entries that lie with a reader for too long, from this id on; and says where to go on.
    pub(super) async fn claim(
        &self,
        connection: &mut MultiplexedConnection,
        from: EntryId,
        most: usize,
    ) -> Told<(EntryId, Vec<Entry>)> {
        let idle_ms = u64::try_from(self.claim_idle.as_millis()).unwrap_or(u64::MAX);
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&*self.stream).arg(&*self.group).arg(&*self.consumer).arg(idle_ms);
        claim.arg(from.to_string()).arg("COUNT").arg(most);
        let told = self.ask(connection, &claim, Duration::ZERO).await?;
        let parts = || match reply::list(&told)? {
            [next, entries, ..] => Some((reply::id(next)?, reply::entries(entries)?)),
            _ => None,
        };
        parts().ok_or_else(|| Trouble::nonsense("XAUTOCLAIM told no entries"))
    }

    /// Fills in how often these were delivered; they are this consumer's, and in order.
    pub(super) async fn count_deliveries(
        &self,
        connection: &mut MultiplexedConnection,
        entries: &mut [Entry],
    ) -> Told<()> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let mut pending = cmd("XPENDING");
        pending.arg(&*self.stream).arg(&*self.group).arg(first.id.to_string()).arg(last.id.to_string());
        pending.arg(entries.len()).arg(&*self.consumer);
        let told = self.ask(connection, &pending, Duration::ZERO).await?;
        for row in reply::list(&told).unwrap_or_default() {
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
    pub(super) async fn acknowledge(
        &self,
        connection: &mut MultiplexedConnection,
        ids: &[EntryId],
    ) -> Told<()> {
        for some in ids.chunks(ACKNOWLEDGED_AT_ONCE) {
            let mut acknowledge = cmd("XACK");
            acknowledge.arg(&*self.stream).arg(&*self.group);
            for id in some {
                acknowledge.arg(id.to_string());
            }
            self.ask(connection, &acknowledge, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Up to where the whole group has acknowledged everything.
    pub(super) async fn floor(&self, connection: &mut MultiplexedConnection) -> Told<Option<EntryId>> {
        let mut both = pipe();
        // In one step: what somebody reads between the two would count as acknowledged.
        both.atomic().cmd("XINFO").arg("GROUPS").arg(&*self.stream);
        both.cmd("XPENDING").arg(&*self.stream).arg(&*self.group);
        let asked = tokio::time::timeout(self.reply_within, both.query_async(connection)).await;
        let (groups, pending): (Value, Value) =
            asked.map_err(|_| Trouble::late())?.map_err(|error| Trouble::told(&error))?;
        let delivered =
            self.group_in(&groups).and_then(|group| reply::id(reply::under(group, "last-delivered-id")?));
        let delivered = delivered.ok_or_else(|| Trouble::nonsense("the group is not among the stream's"))?;
        let pending = reply::list(&pending).and_then(|pending| reply::id(pending.get(1)?));
        let floor = match pending {
            None => delivered.position(),
            Some(first) => Position::new(first.position().get().saturating_sub(1)),
        };
        Ok(Some(EntryId::at(floor)).filter(|floor| !floor.is_start()))
    }

    /// How many entries nobody of the group has read, where the server knows.
    pub(super) async fn lag(&self, connection: &mut MultiplexedConnection) -> Told<Option<u64>> {
        let mut groups = cmd("XINFO");
        groups.arg("GROUPS").arg(&*self.stream);
        let groups = self.ask(connection, &groups, Duration::ZERO).await?;
        Ok(self.group_in(&groups).and_then(|group| reply::number(reply::under(group, "lag")?)))
    }

    fn group_in<'a>(&self, groups: &'a Value) -> Option<&'a Value> {
        let is_ours = |group: &&Value| {
            reply::under(group, "name").and_then(reply::bytes) == Some(self.group.as_bytes())
        };
        reply::list(groups)?.iter().find(is_ours)
    }

    fn read(&self, most: usize) -> Cmd {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&*self.group).arg(&*self.consumer).arg("COUNT").arg(most);
        read
    }

    /// Asks, and waits for the answer; this much longer if the server is to wait itself.
    async fn ask(&self, connection: &mut MultiplexedConnection, cmd: &Cmd, wait: Duration) -> Told<Value> {
        let within = self.reply_within.saturating_add(wait);
        let told = tokio::time::timeout(within, cmd.query_async(connection)).await;
        told.map_err(|_| Trouble::late())?.map_err(|error| Trouble::told(&error))
    }
}

/// Entries of the one stream that was read: `[[stream, entries]]`, or nothing.
fn entries_of_stream(told: &Value) -> Told<Vec<Entry>> {
    let entries = || match told {
        Value::Nil => Some(Vec::new()),
        told => match reply::list(told)? {
            [] => Some(Vec::new()),
            [stream] => reply::entries(reply::list(stream)?.get(1)?),
            _ => None,
        },
    };
    entries().ok_or_else(|| Trouble::nonsense("XREADGROUP told no entries"))
}
