//! Waiting for something that another process does: looked for again and again, until a deadline.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Longer than anything takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Waits until `look` finds something. What it saw last is in the error.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let started_at = now();
    loop {
        let why = match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "not yet".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        if started_at.elapsed() > PATIENCE {
            bail!("waited {} s for {what}: {why}", PATIENCE.as_secs());
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

#[expect(clippy::disallowed_methods, reason = "real time: we wait for other processes")]
fn now() -> Instant {
    Instant::now()
}
