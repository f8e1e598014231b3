//! How a handler says that it failed.

use std::fmt;

use semel::Outcome;

/// What a handler says of an event: what came of it, or why nothing did.
pub type Handled = Result<Outcome, Failure>;

/// Why an event was not processed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It may work later: try again after a while.
    Retry(String),
    /// This event will never work, others will: to the dead letters with it, at once.
    Dead(String),
    /// Nothing will work before somebody has looked: stop. The event stays unprocessed.
    Stop(String),
}

impl Failure {
    /// The word for what is done about it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Retry(_) => "retry",
            Self::Dead(_) => "dead",
            Self::Stop(_) => "stop",
        }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Self::Retry(reason) | Self::Dead(reason) | Self::Stop(reason) => reason,
        }
    }
}

/// Whatever a handler fails with may work later, unless it says otherwise.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Retry(error.to_string())
    }
}

// Not an `Error`, so that every error becomes one by itself.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}
