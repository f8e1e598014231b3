//! What was lost, doubled or stuck.

use std::fmt;

/// How many findings are told in words; the rest is counted.
const EXAMPLES_MAX: usize = 10;

/// What a store got wrong, counted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// How many grants, outcomes and releases were acknowledged in all.
    pub acknowledged: u64,
    /// Keys of which something was acknowledged that is no longer so.
    pub lost: u64,
    /// Keys that two callers were told to run at the same time.
    pub doubled: u64,
    /// Keys that nobody can claim, and that have no outcome either.
    pub wedged: u64,
    /// The first findings, in words for people.
    pub examples: Vec<String>,
}

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Lost,
    Doubled,
    Wedged,
}

impl Losses {
    /// Whether the store kept all that it had promised.
    pub fn are_none(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.wedged == 0
    }

    /// Counts what is wrong with one key, each kind once.
    pub(super) fn add(&mut self, key: &str, findings: &[(Wrong, String)]) {
        let any = |kind: Wrong| u64::from(findings.iter().any(|(wrong, _)| *wrong == kind));
        self.lost += any(Wrong::Lost);
        self.doubled += any(Wrong::Doubled);
        self.wedged += any(Wrong::Wedged);
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        self.examples
            .extend(findings.iter().take(room).map(|(wrong, what)| format!("{key}: {wrong:?}: {what}")));
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, lost, doubled, wedged, examples } = self;
        write!(f, "{acknowledged} acknowledged: {lost} lost, {doubled} doubled, {wedged} wedged")?;
        examples.iter().try_for_each(|example| write!(f, "\n  {example}"))
    }
}
