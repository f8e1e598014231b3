//! What became of an action, told on the page that is shown after it. A word in the address, never free text: whoever makes
//! a link must not be able to put words into this server's mouth.

use maud::{Markup, html};

/// What became of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flash {
    Released,
    Resolved,
    NotHeld,
    Changed,
}

impl Flash {
    const ALL: [Self; 4] = [Self::Released, Self::Resolved, Self::NotHeld, Self::Changed];

    /// The word in the address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Resolved => "resolved",
            Self::NotHeld => "not_held",
            Self::Changed => "changed",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flash| flash.word() == word)
    }

    /// What is told.
    pub(super) fn shown(self) -> Markup {
        let (class, said) = match self {
            Self::Released => ("flash fine", "Released. The next claim runs it as a new attempt."),
            Self::Resolved => ("flash fine", "Resolved. Every retry gets this outcome from now on."),
            Self::NotHeld => {
                ("flash warning", "Nothing was changed: it is not held any more. Here is how it is now.")
            }
            Self::Changed => (
                "flash warning",
                "Nothing was changed: it is not as it was when you looked. Here is how it is now; decide again.",
            ),
        };
        html! { p class=(class) role="status" data-test="flash" { (said) } }
    }
}
