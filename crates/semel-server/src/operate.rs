//! What operators do.

use semel::record::Record;
use semel::{Resolution, Resolved, Result};

use crate::access::Caller;
use crate::served::Served;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Released.
    Released,
    /// Resolved.
    Resolved,
    /// Not held.
    NotHeld,
    /// Changed.
    Changed,
}

/// Releases.
pub async fn release(served: &Served, caller: &Caller, record: &Record, reason: &str, version: Option<u64>) -> Result<Settled> {
    let resolution = Resolution::Release { reason: reason.into() };
    match resolve(served, caller, record, resolution, version).await? {
        Settled::Resolved => Ok(Settled::Released),
        other => Ok(other),
    }
}

/// Resolves.
pub async fn resolve(served: &Served, caller: &Caller, record: &Record, resolution: Resolution, version: Option<u64>) -> Result<Settled> {
    let _ = caller;
    if version.is_some_and(|version| version != record.version.get()) {
        return Ok(Settled::Changed);
    }
    let resolved = served.semel.resolve(&record.key, resolution).await?;
    served.census.look_soon();
    Ok(match resolved {
        Resolved::Resolved => Settled::Resolved,
        Resolved::NotHeld => Settled::NotHeld,
    })
}
