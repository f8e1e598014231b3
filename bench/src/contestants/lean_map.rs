//! `DashMap<String, …>` with check-then-insert, leaner than projects write it themselves.
//!
//! It is given every benefit of the doubt: the fingerprint is kept as bytes and not as hex, the
//! response as one piece of bytes, nothing is ever swept, and
//! two callers of one key may both run.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use dashmap::DashMap;

use super::contestant::{Claimed, Contestant};
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};

const KEPT_FOR: Duration = Duration::from_hours(24);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
}

#[derive(Clone)]
struct Kept {
    status: Status,
    fingerprint: [u8; 32],
    response: Option<Vec<u8>>,
    #[expect(
        dead_code,
        reason = "kept because projects keep it: its bytes and its clock read are part of the cost"
    )]
    created_at: SystemTime,
    expires_at: SystemTime,
    #[expect(dead_code, reason = "kept because projects keep it: its allocation is part of the cost")]
    owner: String,
}

/// The map.
pub(crate) struct LeanMap {
    map: DashMap<String, Kept>,
    response: Vec<u8>,
}

enum Begun {
    Fresh,
    Known(Kept),
}

impl LeanMap {
    pub(crate) fn new() -> Self {
        Self { map: DashMap::new(), response: Response::new().encoded() }
    }

    fn begin(&self, key: &str, fingerprint: [u8; 32]) -> Begun {
        let now = now();
        if let Some(kept) = self.map.get(key).map(|kept| kept.clone())
            && kept.expires_at > now
        {
            return Begun::Known(kept);
        }
        let kept = Kept {
            status: Status::InProgress,
            fingerprint,
            response: None,
            created_at: now,
            expires_at: now + KEPT_FOR,
            owner: "pid 1042".to_owned(),
        };
        self.map.insert(key.to_owned(), kept);
        Begun::Fresh
    }

    fn finish(&self, key: &str, response: Vec<u8>) -> Result<()> {
        let mut kept = self.map.get_mut(key).context("what was begun is there")?;
        kept.status = Status::Completed;
        kept.response = Some(response);
        kept.expires_at = now() + KEPT_FOR;
        Ok(())
    }
}

impl Contestant for LeanMap {
    type Run = String;

    async fn claim(&self, number: u64) -> Result<Claimed<String>> {
        let (key, fingerprint) = (key(number), inputs::digest(number));
        let Begun::Known(kept) = self.begin(&key, fingerprint) else {
            return Ok(Claimed::Run(key));
        };
        if kept.fingerprint != fingerprint || kept.status != Status::Completed {
            bail!("key {number} is not what it was");
        }
        Ok(Claimed::Replay(kept.response.context("what is completed has a response")?.len()))
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
