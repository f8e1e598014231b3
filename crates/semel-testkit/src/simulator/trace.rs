//! Everything that happened, in order, as one digest.

use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Everything that happened, in order.
#[derive(Clone)]
pub(super) struct Trace {
    started_at: Instant,
    echo: Echo,
    told: Arc<Mutex<(Sha256, u64)>>,
}

/// Whether somebody reads along: set `SEMEL_TRACE` to anything.
#[derive(Clone, Copy, PartialEq)]
enum Echo {
    None,
    ToStderr,
}

impl Trace {
    pub(super) fn start() -> Self {
        let echo = if std::env::var_os("SEMEL_TRACE").is_some() { Echo::ToStderr } else { Echo::None };
        Self { started_at: Instant::now(), echo, told: Arc::new(Mutex::new((Sha256::new(), 0))) }
    }

    pub(super) fn tell(&self, who: &str, what: &str) {
        let at = self.started_at.elapsed().as_micros();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0.update(format!("{at} {who}: {what}\n"));
        told.1 += 1;
        if self.echo == Echo::ToStderr {
            eprintln!("{at:>12} {who}: {what}");
        }
    }

    pub(super) fn digest(&self) -> ([u8; 32], u64) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.0.clone().finalize().into(), told.1)
    }
}
