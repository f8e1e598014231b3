//! `DashMap<String, …>` with check-then-insert: one lookup and one clone to check, one insert to begin, one lookup to
//! complete. Nothing is ever swept, and two callers of one key may both run.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use dashmap::DashMap;

use super::{Claimed, Contestant};
use crate::inputs::{self, HexDigest, Name, OPERATION, Response, SCOPE};

const KEPT_FOR: Duration = Duration::from_hours(24);

/// A map with records as web projects write them. Nothing in it is slower than such code is.
pub(crate) type PlainMap = RecordMap<PlainRecord>;
/// The same with fewer bytes than projects usually have: the fingerprint as bytes, the response in one piece.
pub(crate) type LeanMap = RecordMap<LeanRecord>;

pub(crate) trait MapRecord: Clone + Send + Sync + 'static {
    type Fingerprint: Send;
    type Response: Clone + Send + Sync;

    fn fingerprint(number: u64) -> Self::Fingerprint;
    fn response() -> Self::Response;
    fn running(key: &str, fingerprint: &Self::Fingerprint, now: SystemTime) -> Self;
    fn expires_at(&self) -> SystemTime;
    fn complete(&mut self, response: Self::Response, now: SystemTime);

    /// How many bytes the response has, if this request is completed.
    fn replay(self, fingerprint: &Self::Fingerprint) -> Option<usize>;
}

pub(crate) struct RecordMap<R: MapRecord> {
    records: DashMap<String, R>,
    response: R::Response,
}

impl<R: MapRecord> RecordMap<R> {
    pub(crate) fn new() -> Self {
        Self { records: DashMap::new(), response: R::response() }
    }
}

impl<R: MapRecord> Contestant for RecordMap<R> {
    type Run = String;

    async fn claim(&self, number: u64) -> Result<Claimed<String>> {
        let key = format!("{SCOPE}:{OPERATION}:{}", Name::of(number).as_str());
        let (fingerprint, now) = (R::fingerprint(number), now());
        if let Some(record) = self.records.get(&key).map(|record| record.clone())
            && record.expires_at() > now
        {
            let bytes = record.replay(&fingerprint);
            return Ok(Claimed::Replay(bytes.with_context(|| format!("key {number} was not replayed"))?));
        }
        self.records.insert(key.clone(), R::running(&key, &fingerprint, now));
        Ok(Claimed::Run(key))
    }

    async fn complete(&self, key: String) -> Result<()> {
        let response = self.response.clone();
        self.records.get_mut(&key).context("a key that was begun is there")?.complete(response, now());
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
}

/// A record as it is usually written.
#[derive(Clone)]
#[expect(dead_code, reason = "kept because projects keep it: its bytes and its copies are part of the cost")]
pub(crate) struct PlainRecord {
    key: String,
    fingerprint: String,
    owner: String,
    status: Status,
    response: Option<Response>,
    created_at: SystemTime,
    updated_at: SystemTime,
    expires_at: SystemTime,
}

impl MapRecord for PlainRecord {
    type Fingerprint = HexDigest;
    type Response = Response;

    fn fingerprint(number: u64) -> HexDigest {
        HexDigest::of(number)
    }

    fn response() -> Response {
        Response::new()
    }

    fn running(key: &str, fingerprint: &HexDigest, now: SystemTime) -> Self {
        Self {
            key: key.to_owned(),
            fingerprint: fingerprint.as_str().to_owned(),
            owner: "pid 1042".to_owned(),
            status: Status::InProgress,
            response: None,
            created_at: now,
            updated_at: now,
            expires_at: now + KEPT_FOR,
        }
    }

    fn expires_at(&self) -> SystemTime {
        self.expires_at
    }

    fn complete(&mut self, response: Response, now: SystemTime) {
        self.status = Status::Completed;
        self.response = Some(response);
        self.updated_at = now;
        self.expires_at = now + KEPT_FOR;
    }

    fn replay(self, fingerprint: &HexDigest) -> Option<usize> {
        let is_it = self.fingerprint == fingerprint.as_str() && self.status == Status::Completed;
        self.response.filter(|_| is_it).map(|response| response.body.len())
    }
}

/// A record with as few bytes as would do.
#[derive(Clone)]
#[expect(
    dead_code,
    reason = "kept because projects keep it: its bytes and its allocation are part of the cost"
)]
pub(crate) struct LeanRecord {
    status: Status,
    fingerprint: [u8; 32],
    response: Option<Vec<u8>>,
    created_at: SystemTime,
    expires_at: SystemTime,
    owner: String,
}

impl MapRecord for LeanRecord {
    type Fingerprint = [u8; 32];
    type Response = Vec<u8>;

    fn fingerprint(number: u64) -> [u8; 32] {
        inputs::digest(number)
    }

    fn response() -> Vec<u8> {
        Response::new().encoded()
    }

    fn running(_: &str, fingerprint: &[u8; 32], now: SystemTime) -> Self {
        let (status, owner) = (Status::InProgress, "pid 1042".to_owned());
        Self {
            status,
            fingerprint: *fingerprint,
            response: None,
            created_at: now,
            expires_at: now + KEPT_FOR,
            owner,
        }
    }

    fn expires_at(&self) -> SystemTime {
        self.expires_at
    }

    fn complete(&mut self, response: Vec<u8>, now: SystemTime) {
        self.status = Status::Completed;
        self.response = Some(response);
        self.expires_at = now + KEPT_FOR;
    }

    fn replay(self, fingerprint: &[u8; 32]) -> Option<usize> {
        let is_it = self.fingerprint == *fingerprint && self.status == Status::Completed;
        self.response.filter(|_| is_it).map(|response| response.len())
    }
}

#[expect(clippy::disallowed_methods, reason = "a project that writes its own map reads the clock like this")]
fn now() -> SystemTime {
    SystemTime::now()
}
