//! How often a caller may ask.

use std::time::Duration;

/// How many asks a second a caller may make. Counts in this process alone.
#[derive(Debug, Default)]
pub struct Quota;

impl Quota {
    /// As often as it likes.
    pub fn none() -> Self {
        Self
    }

    /// Takes so many asks, or says how long to wait.
    pub fn take(&self, asks: u64) -> Result<(), Duration> {
        let _ = (self, asks);
        Ok(())
    }
}
