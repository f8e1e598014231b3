//! What a store's server is set to, against what the store's promise needs.

use std::fmt;

/// One setting of a store's server, and whether the promise holds with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The server's own name for it.
    pub setting: Box<str>,
    /// What it is set to; `None` if it cannot be read.
    pub found: Option<Box<str>>,
    /// What the promise needs.
    pub wanted: Box<str>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether the promise holds with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Kept,
    /// It does not: what was acknowledged could be lost.
    Broken,
    /// Nobody knows: the setting cannot be read.
    Unreadable,
}

impl Verdict {
    /// The word for it, wherever it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
