//! The store: four questions, each one statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use semel::clock::Timestamp;
use semel::store::{Answer, Caching, Finding, Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::batch::Batch;
use crate::config::Config;
use crate::error::{corrupt, no_reply};
use crate::reconnecting::{Answered, Reconnecting};
use crate::replication::Barrier;
use crate::row;
use crate::servers::{ServerIdentity, Servers};
use crate::session::{Purpose, Question};
use crate::statement::{self, Known};
use crate::swap_answer::{loaded, no_earlier};
use crate::value::{Array, Moment, Raw, Value};

/// How many rows one statement removes at most: callers who commit meanwhile wait for no more than its log.
const SWEPT_AT_ONCE_MAX: usize = 256;
/// How many rows a page looks at for the few that its filter lets through.
const LOOKED_AT_MAX: usize = 20_000;
/// How many times as long as a swap a sweep or a page of a list may take.
const CHORE_FACTOR: u32 = 6;

/// Records in a PostgreSQL database, shared by any number of processes. Cheap to clone.
///
/// It keeps a few connections of its own, makes them when they are needed, and makes them anew when they are lost.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) connections: Arc<Connections>,
}

/// The connections, by what they are for: no quick question waits behind a slow one.
pub(crate) struct Connections {
    pub(crate) servers: Arc<Servers>,
    swaps: Vec<(AtomicUsize, Reconnecting)>,
    loads: Reconnecting,
    chores: Reconnecting,
    /// For writes that only wait for the synchronous standby. Connected if there is one.
    barriers: Reconnecting,
}

impl PostgresStore {
    /// Connects to the server at this URL, and refuses one that cannot keep the promise. The schema must be there: see
    /// [`migrate`](crate::migrate).
    pub async fn connect(url: &str) -> Result<Self> {
        Self::open(Config::from_url(url)?).await
    }

    /// The same with a config that is at hand.
    pub async fn open(config: Config) -> Result<Self> {
        let servers = Arc::new(Servers::new(config)?);
        let config = &servers.config;
        let connection = |purpose, within| Reconnecting::new(Arc::clone(&servers), purpose, within);
        let swap_connection = |_| (AtomicUsize::new(0), connection(Purpose::Writes, config.reply_within));
        let connections = Connections {
            swaps: (0..config.swap_connections).map(swap_connection).collect(),
            loads: connection(Purpose::Reads, config.reply_within),
            chores: connection(Purpose::Reads, config.reply_within.saturating_mul(CHORE_FACTOR)),
            barriers: connection(Purpose::Writes, config.reply_within),
            servers: Arc::clone(&servers),
        };
        // Whatever is wrong should be returned now, and not to the first claim.
        connections.loads.session().await?.settings.demand(config)?;
        Ok(Self { connections: Arc::new(connections) })
    }

    /// The server's settings and the role's rights, against what the promise needs.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        self.connections.check().await
    }

    /// The settings that break the promise, by the last check. They are checked again while the store is used; while one is
    /// broken, new claims are refused, unless the URL says `durability=as-configured`.
    pub fn broken_settings(&self) -> Arc<[Finding]> {
        self.connections.servers.health.watch.broken()
    }

    /// What acknowledgements survive, in words, by the settings that were found last.
    pub fn survives(&self) -> String {
        self.connections.servers.health.survives()
    }
}

impl Store for PostgresStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let connections = Arc::clone(&self.connections);
        Reply::later(async move { connections.swap(batch).await })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let connections = Arc::clone(&self.connections);
        Reply::later(async move { connections.load(&ids).await })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let connections = Arc::clone(&self.connections);
        Reply::later(async move { connections.sweep(limit).await })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let connections = Arc::clone(&self.connections);
        Reply::later(async move { connections.scan(&scan).await })
    }
}

impl Connections {
    /// Looks at everything that the promise needs, and remembers what is found. On a connection of its own where that for
    /// chores is not open: one that is set up would be refused for what is to be found out here.
    async fn check(&self) -> Result<Vec<Finding>> {
        self.servers.look_for_promoted().await;
        let within = self.servers.config.reply_within;
        let read = async {
            match self.chores.open_session().await {
                Some(session) => self.servers.check(session.wire()).await,
                None => self.servers.check(&self.servers.connect(|_| {}).await?.wire).await,
            }
        };
        timeout(within, read).await.unwrap_or_else(|_| Err(no_reply(within, false)))
    }

    async fn swap(self: Arc<Self>, swaps: Swaps) -> Result<Answer<SwapReplies>> {
        if self.servers.health.watch.take_due() {
            let connections = Arc::clone(&self);
            tokio::spawn(async move { connections.check().await });
        }
        let (_turn, connection) = self.least_busy();
        // A new session may be on a server with other settings.
        connection.session().await?;
        let mut batch = Batch::new(swaps, self.servers.health.watch.refusal().as_ref());
        if batch.is_answered() {
            let now = self.load(&[]).await?.now;
            return batch.answer_at(now);
        }
        let mut asked = None;
        while batch.go_on()? {
            let answered = self.swap_round(connection, &batch).await;
            let Answered { rows, server } = answered.map_err(|error| batch.after_others(error))?;
            if *asked.get_or_insert(server) != server {
                // What the rounds before wrote and showed was on a server that is no longer the primary.
                let message = "another server was promoted while a batch was under way; ask again with the same permits";
                return Err(Error::new(ErrorKind::Unknown, message));
            }
            batch.hear(&rows)?;
        }
        let shown = batch.shown_done();
        let confirmed = self.confirm(asked.flatten(), &shown).await;
        batch.answer(&confirmed)
    }

    async fn swap_round(&self, connection: &Reconnecting, batch: &Batch) -> Result<Answered> {
        match batch.round() {
            [only] => {
                let (known, values) = row::question(only);
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                connection.ask(Question::Known(known), &values).await
            }
            many => {
                let [absent, expected] = row::swap_arrays(many);
                connection.ask(Question::Known(Known::SwapBatch), &[&absent, &expected]).await
            }
        }
    }

    /// The connection for swaps with the fewest batches on it, and a place on it.
    fn least_busy(&self) -> (Turn<'_>, &Reconnecting) {
        let least = self.swaps.iter().min_by_key(|(busy, _)| busy.load(Ordering::Relaxed));
        match least {
            Some((busy, connection)) => (Turn::start(busy), connection),
            // There is always one; without any, the connection of the loads does as well.
            None => (Turn { busy: None }, &self.loads),
        }
    }

    /// Whether outcomes that these transactions of a server wrote may be shown: all of them are on the synchronous standby,
    /// if there is one.
    async fn confirm(&self, server: Option<ServerIdentity>, transactions: &[u32]) -> Result<()> {
        let barrier = async || {
            let Answered { rows, server } = self.barriers.ask(Question::Known(Known::Barrier), &[]).await?;
            let row =
                rows.first().ok_or_else(|| Error::new(ErrorKind::Unknown, "the server gave no answer"))?;
            Ok(Barrier { server, oldest_running: get::<i64>(row, 0)?.unsigned_abs() })
        };
        self.servers.health.replication.confirm(server, transactions, barrier).await
    }

    async fn load(&self, ids: &[RecordId]) -> Result<Answer<Vec<Loaded>>> {
        if ids.is_empty() {
            let rows = self.loads.ask(Question::Known(Known::Moment), &[]).await?.rows;
            return Ok(answer(moment(rows.first(), 0)?, Vec::new()));
        }
        let mut wanted = Array::default();
        for id in ids {
            wanted.push(&Value::Digest(*id.as_bytes()));
        }
        let parameters: [&(dyn ToSql + Sync); 1] = [&wanted];
        let Answered { rows, server } = self.loads.ask(Question::Known(Known::Load), &parameters).await?;
        let mut value: Vec<Loaded> = ids.iter().map(|_| Ok(None)).collect();
        let mut shown_done = Vec::new();
        for row in &rows {
            let place = usize::try_from(get::<i64>(row, 0)?).unwrap_or(0).saturating_sub(1);
            let shown = get::<Option<Raw<'_>>>(row, 2)?.map(|raw| raw.0);
            if let (Some(slot), Some(id)) = (value.get_mut(place), ids.get(place)) {
                *slot = loaded(id, shown);
                shown_done.extend(row::done_by(slot, shown).map(|transaction| (place, transaction)));
            }
        }
        let transactions: Vec<_> = shown_done.iter().map(|(_, transaction)| *transaction).collect();
        if let Err(error) = self.confirm(server, &transactions).await {
            for (place, _) in shown_done {
                if let Some(slot) = value.get_mut(place) {
                    *slot = Err(error.clone());
                }
            }
        }
        Ok(answer(no_earlier(moment(rows.first(), 1)?, &value), value))
    }

    async fn sweep(&self, limit: usize) -> Result<Answer<Swept>> {
        if self.servers.health.watch.take_due() {
            // It takes in and logs what it finds; a server that does not answer fails the sweep below.
            drop(self.check().await);
        }
        let mut swept = Swept::default();
        loop {
            let most = limit.saturating_sub(swept.removed).min(SWEPT_AT_ONCE_MAX);
            let asked = i64::try_from(most).unwrap_or(i64::MAX);
            let parameters: [&(dyn ToSql + Sync); 1] = [&asked];
            let rows = self.chores.ask(Question::Known(Known::Sweep), &parameters).await?.rows;
            let removed = rows.first().map_or(Ok(0), |row| get::<i64>(row, 1))?;
            let removed = usize::try_from(removed).unwrap_or(0);
            swept.removed = swept.removed.saturating_add(removed);
            swept.more_left = removed >= most;
            if !swept.more_left || swept.removed >= limit {
                return Ok(answer(moment(rows.first(), 0)?, swept));
            }
        }
    }

    async fn scan(&self, scan: &Scan) -> Result<Answer<Page>> {
        let after = scan.after.as_ref().map_or(&[][..], |id| id.as_bytes());
        let filter = &scan.filter;
        let is_narrow = filter.operation.is_some()
            || filter.name.is_some()
            || !filter.scope.is_empty()
            || !filter.states.is_empty()
            || filter.first_seen_before.is_some();
        let look = if is_narrow { LOOKED_AT_MAX.max(scan.limit) } else { scan.limit };
        let look = i64::try_from(look.saturating_sub(1)).unwrap_or(i64::MAX);
        let show = i64::try_from(scan.limit).unwrap_or(i64::MAX);
        let scope: Vec<&str> = filter.scope.iter().map(|part| &**part).collect();
        let before = Value::Moment(filter.first_seen_before);
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&after, &look, &show];
        let mut types = vec![Type::BYTEA, Type::INT8, Type::INT8];
        let mut add = |value, kind| {
            parameters.push(value);
            types.push(kind);
        };
        if !scope.is_empty() {
            add(&scope, Type::TEXT_ARRAY);
        }
        for text in filter.operation.iter().chain(&filter.name) {
            add(text, Type::TEXT);
        }
        if filter.first_seen_before.is_some() {
            add(&before, Type::TIMESTAMPTZ);
        }
        let text = statement::scan(scan);
        let rows = self.chores.ask(Question::Read(&text, &types), &parameters).await?.rows;
        let now = moment(rows.first(), 0)?;
        let edge = rows.first().map(|row| id_of(row, 1)).transpose()?.flatten();
        let mut found = Vec::new();
        for row in &rows {
            if let Some(id) = id_of(row, 2)? {
                found.push((id, loaded(&id, get::<Option<Raw<'_>>>(row, 3)?.map(|raw| raw.0))));
            }
        }
        // A full page ends at its last row; one that looked far enough, where it stopped looking.
        let is_full = found.len() >= scan.limit;
        let next = if is_full { found.last().map(|(id, _)| *id) } else { edge };
        let now = no_earlier(now, found.iter().map(|(_, found)| found));
        let mut page = Page { next, ..Page::default() };
        for (id, found) in found {
            match found {
                Ok(record) => page.records.extend(record),
                Err(why) => page.damaged.push((id, why)),
            }
        }
        Ok(answer(now, page))
    }
}

/// A batch that is under way on a connection, until dropped.
struct Turn<'a> {
    busy: Option<&'a AtomicUsize>,
}

impl<'a> Turn<'a> {
    fn start(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self { busy: Some(busy) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(busy) = self.busy {
            busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A column of an answer.
pub(crate) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|failed| {
        Error::new(ErrorKind::Corrupt, "an answer of the server has another shape than was asked for")
            .caused_by(failed)
    })
}

/// An answer of the server: asking again costs a round trip, so engines may keep done records of it.
fn answer<T>(now: Timestamp, value: T) -> Answer<T> {
    Answer::new(now, value).caching(Caching::Allowed)
}

fn id_of(row: &Row, column: usize) -> Result<Option<RecordId>> {
    let Some(raw) = get::<Option<Raw<'_>>>(row, column)? else { return Ok(None) };
    let id = raw.0.try_into().map_err(|_| corrupt("its id is not 32 bytes long"))?;
    Ok(Some(RecordId::from_bytes(id)))
}

fn moment(row: Option<&Row>, column: usize) -> Result<Timestamp> {
    let row = row.ok_or_else(|| Error::new(ErrorKind::Unknown, "the server gave no answer; ask again"))?;
    Ok(get::<Moment>(row, column)?.0)
}
