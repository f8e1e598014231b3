//! What came of lost replies.

use std::fmt;

/// What came of every command whose replies were lost.
#[derive(Clone, Debug, Default)]
pub struct LostReplies {
    /// How each command was tried.
    pub tried: Vec<Tried>,
    /// What went wrong, in words for people.
    pub faults: Vec<String>,
}

/// How one command was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// What it is called.
    pub command: &'static str,
    /// How often its answer was lost after the server had given it.
    pub lost: u64,
    /// How often its request never arrived.
    pub dropped: u64,
    /// How often its swap was seen to have taken though its answer was lost. Never, if it swaps nothing.
    pub landed: u64,
}

impl LostReplies {
    /// Whether every command was tried with a lost answer, and none did any harm.
    pub fn are_harmless(&self) -> bool {
        self.faults.is_empty() && self.tried.iter().all(|tried| tried.lost > 0 && tried.dropped > 0)
    }
}

impl fmt::Display for LostReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Tried { command, lost, dropped, landed } in &self.tried {
            writeln!(
                f,
                "{command}: {lost} answers lost ({landed} seen to have taken), {dropped} requests dropped"
            )?;
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "fault: {fault}"))
    }
}
