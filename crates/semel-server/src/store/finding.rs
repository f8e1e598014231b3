//! One thing that a store's promise depends on, and whether it holds.

/// One thing that a store's promise depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: a setting, a file system, a place.
    pub setting: String,
    /// What it is.
    pub found: String,
    /// What the promise needs it to be.
    pub wanted: String,
    /// Whether the promise holds.
    pub verdict: Verdict,
}

/// Whether a promise holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Kept,
    /// It does not.
    Broken,
    /// Nobody can tell: what it depends on could not be read.
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
