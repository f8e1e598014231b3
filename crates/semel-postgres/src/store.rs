//! The store: four questions, each one statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use semel::clock::Timestamp;
use semel::store::{
    Answer, Caching, Finding, Loaded, Page, Reply, Scan, Store, Swap, SwapReplies, Swaps, Swept,
};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::batch::Batch;
use crate::check;
use crate::config::Config;
use crate::error::corrupt;
use crate::reconnecting::{Question, Reconnecting};
use crate::row;
use crate::session::Statements;
use crate::statement;
use crate::swap_answer::{loaded, no_earlier};
use crate::value::{Column, Moment, Raw, Value};

/// How many rows one statement removes at most: callers who commit meanwhile wait for no more than its log.
const SWEPT_AT_ONCE_MAX: usize = 256;
/// How many rows a page looks at for the few that its filter lets through.
const LOOKED_AT_MAX: usize = 20_000;

/// Records in a PostgreSQL database, shared by any number of processes. Cheap to clone.
///
/// It keeps a few connections of its own, makes them when they are needed, and makes them anew when they are lost.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) connections: Arc<Connections>,
}

/// The connections, by what they are for: no quick question waits behind a slow one.
pub(crate) struct Connections {
    pub(crate) config: Arc<Config>,
    swaps: Vec<(AtomicUsize, Reconnecting)>,
    loads: Reconnecting,
    chores: Reconnecting,
}

impl PostgresStore {
    /// Connects to the server at this URL, and refuses one that cannot keep the promise. The schema must be there: see
    /// [`migrate`](crate::migrate).
    pub async fn connect(url: &str) -> Result<Self> {
        Self::open(Config::from_url(url)?).await
    }

    /// The same with a config that is at hand.
    pub async fn open(config: Config) -> Result<Self> {
        let config = Arc::new(config);
        let connection = || Reconnecting::new(Arc::clone(&config));
        let connections = Connections {
            config: Arc::clone(&config),
            swaps: (0..config.swap_connections).map(|_| (AtomicUsize::new(0), connection())).collect(),
            loads: connection(),
            chores: connection(),
        };
        // Whatever is wrong should be heard now, and not by the first claim.
        connections.loads.session().await?;
        Ok(Self { connections: Arc::new(connections) })
    }

    /// The server's settings, against what the promise needs.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let session = self.connections.chores.session().await?;
        check::findings(&session.client).await
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
    async fn swap(&self, swaps: Swaps) -> Result<Answer<SwapReplies>> {
        let mut batch = Batch::new(swaps);
        if batch.is_answered() {
            return Ok(self.load(&[]).await?.map(|_| SwapReplies::new()));
        }
        let (_turn, connection) = self.least_busy();
        while batch.go_on()? {
            let rows =
                self.swap_round(connection, &batch).await.map_err(|error| batch.after_others(error))?;
            batch.hear(&rows)?;
        }
        batch.answer()
    }

    async fn swap_round(&self, connection: &Reconnecting, batch: &Batch) -> Result<Vec<Row>> {
        match batch.round() {
            [only] => {
                let values = row::values(only);
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                let question: fn(&Statements) -> &Statement = match only.expected {
                    None => |known| &known.insert_one,
                    Some(_) => |known| &known.update_one,
                };
                connection.ask(Question::Known(question), &values).await
            }
            many => {
                let columns = columns(many);
                let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as _).collect();
                connection.ask(Question::Known(|known| &known.swap_batch), &columns).await
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

    async fn load(&self, ids: &[RecordId]) -> Result<Answer<Vec<Loaded>>> {
        if ids.is_empty() {
            let rows = self.loads.ask(Question::Known(|known| &known.now), &[]).await?;
            return Ok(answer(moment(rows.first(), 0)?, Vec::new()));
        }
        let mut column = Column::default();
        for id in ids {
            column.push(&Value::Digest(*id.as_bytes()));
        }
        let parameters: [&(dyn ToSql + Sync); 1] = [&column];
        let rows = self.loads.ask(Question::Known(|known| &known.load), &parameters).await?;
        let mut value: Vec<Loaded> = ids.iter().map(|_| Ok(None)).collect();
        for row in &rows {
            let place = usize::try_from(get::<i64>(row, 0)?).unwrap_or(0).saturating_sub(1);
            let shown = get::<Option<Raw<'_>>>(row, 2)?.map(|raw| raw.0);
            if let (Some(slot), Some(id)) = (value.get_mut(place), ids.get(place)) {
                *slot = loaded(id, shown);
            }
        }
        Ok(answer(no_earlier(moment(rows.first(), 1)?, &value), value))
    }

    async fn sweep(&self, limit: usize) -> Result<Answer<Swept>> {
        let mut swept = Swept::default();
        loop {
            let most = limit.saturating_sub(swept.removed).min(SWEPT_AT_ONCE_MAX);
            let asked = i64::try_from(most).unwrap_or(i64::MAX);
            let parameters: [&(dyn ToSql + Sync); 1] = [&asked];
            let rows = self.chores.ask(Question::Known(|known| &known.sweep), &parameters).await?;
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
        if !scope.is_empty() {
            parameters.push(&scope);
        }
        parameters.extend(filter.operation.iter().map(|operation| operation as &(dyn ToSql + Sync)));
        parameters.extend(filter.name.iter().map(|name| name as &(dyn ToSql + Sync)));
        if filter.first_seen_before.is_some() {
            parameters.push(&before);
        }
        let text = statement::scan(scan);
        let rows = self.chores.ask(Question::Text(&text), &parameters).await?;
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

fn columns(swaps: &[Swap]) -> [Column; row::ASKED_COUNT] {
    let mut columns: [Column; row::ASKED_COUNT] = std::array::from_fn(|_| Column::default());
    for swap in swaps {
        for (column, value) in columns.iter_mut().zip(&row::values(swap)) {
            column.push(value);
        }
    }
    columns
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
