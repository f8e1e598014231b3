//! `DashMap<String, …>` with check-then-insert, as web projects write it themselves.
//!
//! Nothing in it is slower than such code is: one lookup and one clone to check, one insert to begin, one lookup to
//! complete. Nothing is ever swept, and two callers of one key may both run.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use dashmap::DashMap;

use super::contestant::{Claimed, Contestant};
use crate::inputs::{HexDigest, Name, OPERATION, Response, SCOPE};

const KEPT_FOR: Duration = Duration::from_hours(24);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
}

#[derive(Clone)]
#[expect(dead_code, reason = "kept because projects keep it: its bytes and its copies are part of the cost")]
struct IdempotencyRecord {
    key: String,
    fingerprint: String,
    owner: String,
    status: Status,
    response: Option<Response>,
    created_at: SystemTime,
    updated_at: SystemTime,
    expires_at: SystemTime,
}

/// The map.
pub(crate) struct PlainMap {
    records: DashMap<String, IdempotencyRecord>,
    response: Response,
}

enum Begun {
    Fresh,
    Duplicate(IdempotencyRecord),
}

impl PlainMap {
    pub(crate) fn new() -> Self {
        Self { records: DashMap::new(), response: Response::new() }
    }

    fn begin(&self, key: &str, fingerprint: &str) -> Begun {
        let now = now();
        if let Some(record) = self.records.get(key).map(|record| record.clone())
            && record.expires_at > now
        {
            return Begun::Duplicate(record);
        }
        let record = IdempotencyRecord {
            key: key.to_owned(),
            fingerprint: fingerprint.to_owned(),
            owner: "pid 1042".to_owned(),
            status: Status::InProgress,
            response: None,
            created_at: now,
            updated_at: now,
            expires_at: now + KEPT_FOR,
        };
        self.records.insert(key.to_owned(), record);
        Begun::Fresh
    }

    fn finish(&self, key: &str, response: Response) -> Result<()> {
        let now = now();
        let mut record = self.records.get_mut(key).context("what was begun is there")?;
        record.status = Status::Completed;
        record.response = Some(response);
        record.updated_at = now;
        record.expires_at = now + KEPT_FOR;
        Ok(())
    }
}

impl Contestant for PlainMap {
    type Run = String;

    async fn claim(&self, number: u64) -> Result<Claimed<String>> {
        let (key, fingerprint) = (key(number), HexDigest::of(number));
        let Begun::Duplicate(record) = self.begin(&key, fingerprint.as_str()) else {
            return Ok(Claimed::Run(key));
        };
        if record.fingerprint != fingerprint.as_str() || record.status != Status::Completed {
            bail!("key {number} is not what it was");
        }
        Ok(Claimed::Replay(record.response.context("what is completed has a response")?.body.len()))
    }

    async fn complete(&self, key: String) -> Result<()> {
        self.finish(&key, self.response.clone())
    }
}

fn key(number: u64) -> String {
    format!("{SCOPE}:{OPERATION}:{}", Name::of(number).as_str())
}

#[expect(clippy::disallowed_methods, reason = "a project that writes its own map reads the clock like this")]
fn now() -> SystemTime {
    SystemTime::now()
}
