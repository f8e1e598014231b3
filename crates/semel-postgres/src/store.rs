//! The store: four questions, each one statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Finding, Page, Reply, Scan, Store, Swap, SwapReply, Swept};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::check;
use crate::config::Config;
use crate::lane::{Lane, Question};
use crate::round::Batch;
use crate::row;
use crate::session::Statements;
use crate::statement;
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
    pub(crate) lanes: Arc<Lanes>,
}

/// The connections, by what they are for: nobody who asks a quick question waits behind a slow one.
pub(crate) struct Lanes {
    pub(crate) config: Arc<Config>,
    swaps: Vec<(AtomicUsize, Lane)>,
    loads: Lane,
    chores: Lane,
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
        let lane = || Lane::new(Arc::clone(&config));
        let lanes = Lanes {
            config: Arc::clone(&config),
            swaps: (0..config.lanes).map(|_| (AtomicUsize::new(0), lane())).collect(),
            loads: lane(),
            chores: lane(),
        };
        // Whatever is wrong should be heard now, and not by the first claim.
        lanes.loads.session().await?;
        Ok(Self { lanes: Arc::new(lanes) })
    }

    /// The server's settings, against what the promise needs.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let session = self.lanes.chores.session().await?;
        check::findings(&session.client).await
    }
}

impl Store for PostgresStore {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        let lanes = Arc::clone(&self.lanes);
        Box::pin(async move { lanes.swap(batch).await })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        let lanes = Arc::clone(&self.lanes);
        Box::pin(async move { lanes.load(&ids).await })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let lanes = Arc::clone(&self.lanes);
        Box::pin(async move { lanes.sweep(limit).await })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let lanes = Arc::clone(&self.lanes);
        Box::pin(async move { lanes.scan(&scan).await })
    }
}

impl Lanes {
    async fn swap(&self, swaps: Vec<Swap>) -> Result<Answer<Vec<SwapReply>>> {
        let mut batch = Batch::new(swaps);
        if batch.is_answered() {
            let Answer { now, .. } = self.load(&[]).await?;
            return Ok(Answer { now, value: Vec::new() });
        }
        let (_turn, lane) = self.least_busy();
        while batch.go_on()? {
            let rows = self.swap_round(lane, &batch).await.map_err(|error| batch.after_others(error))?;
            batch.hear(&rows)?;
        }
        batch.answer()
    }

    async fn swap_round(&self, lane: &Lane, batch: &Batch) -> Result<Vec<Row>> {
        match batch.round() {
            [only] => {
                let values = row::values(only);
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                let question: fn(&Statements) -> &Statement = match only.expected {
                    None => |known| &known.insert_one,
                    Some(_) => |known| &known.update_one,
                };
                lane.ask(Question::Known(question), &values).await
            }
            many => {
                let columns = columns(many);
                let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as _).collect();
                lane.ask(Question::Known(|known| &known.swap_batch), &columns).await
            }
        }
    }

    /// The swap lane with the fewest batches on it, and a place on it.
    fn least_busy(&self) -> (Turn<'_>, &Lane) {
        let least = self.swaps.iter().min_by_key(|(busy, _)| busy.load(Ordering::Relaxed));
        match least {
            Some((busy, lane)) => (Turn::start(busy), lane),
            // There is always one; without any, the lane of the loads does as well.
            None => (Turn { busy: None }, &self.loads),
        }
    }

    async fn load(&self, ids: &[RecordId]) -> Result<Answer<Vec<Option<Record>>>> {
        if ids.is_empty() {
            let rows = self.loads.ask(Question::Known(|known| &known.now), &[]).await?;
            return Ok(Answer { now: moment(rows.first(), 0)?, value: Vec::new() });
        }
        let mut column = Column::default();
        for id in ids {
            column.push(&Value::Digest(*id.as_bytes()));
        }
        let parameters: [&(dyn ToSql + Sync); 1] = [&column];
        let rows = self.loads.ask(Question::Known(|known| &known.load), &parameters).await?;
        let mut value: Vec<Option<Record>> = ids.iter().map(|_| None).collect();
        for answer in &rows {
            let place = usize::try_from(get::<i64>(answer, 0)?).unwrap_or(0);
            let found = get::<Option<Raw<'_>>>(answer, 2)?.map(|raw| row::record(raw.0)).transpose()?;
            if let Some(slot) = value.get_mut(place.saturating_sub(1)) {
                *slot = found;
            }
        }
        let now = no_earlier(moment(rows.first(), 1)?, value.iter().flatten());
        Ok(Answer { now, value })
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
                return Ok(Answer { now: moment(rows.first(), 0)?, value: swept });
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
        let mut records = Vec::new();
        for answer in &rows {
            if let Some(raw) = get::<Option<Raw<'_>>>(answer, 2)? {
                records.push(row::record(raw.0)?);
            }
        }
        let edge = rows.first().map(|row| get::<Option<Raw<'_>>>(row, 1)).transpose()?.flatten();
        let edge = edge.and_then(|raw| raw.0.try_into().ok()).map(RecordId::from_bytes);
        // A full page ends at its last record; one that looked far enough, where it stopped looking.
        let is_full = records.len() >= scan.limit;
        let next = if is_full { records.last().map(|record: &Record| record.key.id()) } else { edge };
        let now = no_earlier(moment(rows.first(), 0)?, &records);
        Ok(Answer { now, value: Page { records, next } })
    }
}

/// A place on a lane, given up when dropped.
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

/// A moment that is not before anything that was found: somebody may have written after the statement came and before it
/// looked.
fn no_earlier<'a>(now: Timestamp, found: impl IntoIterator<Item = &'a Record>) -> Timestamp {
    found.into_iter().map(|record| record.changed_at).fold(now, Timestamp::max)
}

fn moment(row: Option<&Row>, column: usize) -> Result<Timestamp> {
    let row = row.ok_or_else(|| Error::new(ErrorKind::Unknown, "the server gave no answer; ask again"))?;
    Ok(get::<Moment>(row, column)?.0)
}
