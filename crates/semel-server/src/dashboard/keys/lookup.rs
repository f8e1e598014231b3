//! One record, if this visitor may see it.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::{Error, ErrorKind};
use tokio::time::timeout;

use crate::dashboard::answer::Refused;
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::lookup::IdPrefix;

/// How long the store may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// A record, and the store's now when it was read.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) now: Timestamp,
}

impl Found {
    /// The record with this id. One of a foreign scope is not there.
    pub(super) async fn by_id(served: &AppState, visitor: &Visitor, id: &str) -> Result<Self, Refused> {
        let id = id.parse::<IdPrefix>().ok().and_then(|id| id.whole());
        let id = id.ok_or_else(|| Refused::no_record(visitor))?;
        let answer = timeout(STORE_TIMEOUT, served.store.load(vec![id])).await;
        let answer = answer.unwrap_or_else(|_| Err(no_answer()));
        let answer = answer.map_err(|error| Refused::store(visitor, &error))?;
        let now = answer.now;
        let record = answer.value.into_iter().next().flatten();
        match record.filter(|record| record.is_live(now) && visitor.caller.reaches(&record.key)) {
            Some(record) => Ok(Self { record, now }),
            None => Err(Refused::no_record(visitor)),
        }
    }
}

fn no_answer() -> Error {
    Error::new(ErrorKind::Unavailable, "the store gave no answer in time; see whether it runs")
}
