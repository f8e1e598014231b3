//! A promise that a store did not keep.

use std::fmt;

/// What a store promised, and what was seen instead.
pub struct Broken {
    promised: &'static str,
    seen: String,
}

impl Broken {
    /// A promise, and what was seen instead.
    pub fn new(promised: &'static str, seen: impl Into<String>) -> Self {
        Self { promised, seen: seen.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promised: {}; seen: {}", self.promised, self.seen)
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Broken {}

impl From<semel::Error> for Broken {
    fn from(error: semel::Error) -> Self {
        Self::new("a store that can be reached answers", format!("{error:?}"))
    }
}

/// Ends a promise as broken unless the condition holds: what was promised, then what was seen.
macro_rules! promised {
    ($holds:expr, $promised:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Broken::new($promised, format!($($seen)+)));
        }
    };
}
pub(super) use promised;
