//! What is read next: first what this consumer left behind, then what others left, then what is new.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use tokio::time::Instant;

use crate::builder::Config;
use crate::connection::{Answer, Connection};
use crate::error::Failure;
use crate::message::{Entry, EntryId};

/// How long the server is asked to wait for news before it is asked again.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Reads entries, on a connection of its own: whoever waits for news keeps it busy.
#[derive(Debug)]
pub(crate) struct Reader {
    config: Arc<Config>,
    connection: Option<Connection>,
    /// How far this consumer's own entries were read that it had not acknowledged; `None` when there are no more.
    own_after: Option<EntryId>,
    /// From where to look for entries that others left behind, and when.
    claim_from: EntryId,
    claim_at: Instant,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) entries: Vec<Entry>,
    /// Whether some of them may be in somebody's hands here already.
    pub(crate) again: bool,
}

impl Reader {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let start = EntryId::default();
        Self { config, connection: None, own_after: Some(start), claim_from: start, claim_at: Instant::now() }
    }

    /// Connects, unless it is connected. An answer may have been lost with the last connection, and the entries in it are
    /// this consumer's: they are read once more.
    pub(crate) async fn connect(&mut self) -> Result<()> {
        if self.connection.is_none() {
            let connected = async {
                let mut connection = Connection::open(&self.config).await?;
                connection.make_group().await?;
                Answer::Ok(connection)
            };
            self.connection = Some(connected.await.map_err(Failure::reading)?);
            self.own_after = Some(EntryId::default());
        }
        Ok(())
    }

    /// Reads at most so many entries; none if none came for a while.
    pub(crate) async fn read(&mut self, most: usize) -> Result<Read> {
        self.connect().await?;
        let Some(mut connection) = self.connection.take() else { return Ok(Read::default()) };
        let read = self.read_from(&mut connection, most).await.map_err(Failure::reading)?;
        // Only a connection on which all went well is used again.
        self.connection = Some(connection);
        Ok(read)
    }

    async fn read_from(&mut self, connection: &mut Connection, most: usize) -> Answer<Read> {
        if let Some(after) = self.own_after {
            let entries = connection.read_own(after, most).await?;
            self.own_after = entries.last().map(|last| last.id);
            if !entries.is_empty() {
                return read_again(&self.config, connection, entries).await;
            }
        }
        if self.claim_at <= Instant::now() {
            let (next, entries) = connection.claim(self.claim_from, most).await?;
            self.claim_from = next;
            if next.is_start() {
                // Twice as often as entries lapse: nobody waits for one much longer than that.
                let pause = self.config.claim_idle.checked_div(2).unwrap_or_default();
                self.claim_at = Instant::now().checked_add(pause).unwrap_or(self.claim_at);
            }
            if !entries.is_empty() {
                return read_again(&self.config, connection, entries).await;
            }
        }
        let until_claim = self.claim_at.saturating_duration_since(Instant::now());
        let entries = connection.read_new(most, until_claim.min(WAIT_MAX)).await?;
        Ok(Read { entries, again: false })
    }
}

/// Entries that were delivered before. Those that were deleted meanwhile are nobody's any more.
async fn read_again(config: &Config, connection: &mut Connection, mut entries: Vec<Entry>) -> Answer<Read> {
    let deleted: Vec<_> =
        entries.iter().filter(|entry| entry.fields.is_none()).map(|entry| entry.id).collect();
    if !deleted.is_empty() {
        tracing::warn!(
            stream = &*config.stream,
            entries = deleted.len(),
            "entries were deleted from the stream before they were processed: trim it later"
        );
        connection.acknowledge(&deleted).await?;
        entries.retain(|entry| entry.fields.is_some());
    }
    connection.count_deliveries(&mut entries).await?;
    Ok(Read { entries, again: true })
}
