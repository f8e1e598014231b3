//! What a power cut leaves of the changes that were not synced yet.

use crate::dice::Dice;

/// Which changes a cut keeps. A sector, a length and a name each change on their own, and each is found as it was at one
/// moment since the last sync: a later change of the same thing never lasts without the earlier one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survival {
    /// Everything, as if all had been synced.
    All,
    /// Nothing that was not synced.
    Nothing,
    /// Each thing as of a moment of its own, any of them.
    Any,
    /// Most things as they were last, a few as of an earlier moment.
    Most,
    /// Most things as they were synced, a few as of a later moment.
    Few,
}

impl Survival {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        match dice.number(1, 10) {
            1 => Self::All,
            2 => Self::Nothing,
            3..=6 => Self::Any,
            7..=8 => Self::Most,
            _ => Self::Few,
        }
    }

    /// How many of `changes` changes of one thing last.
    pub(crate) fn of(self, changes: usize, dice: &mut Dice) -> usize {
        match self {
            Self::All => changes,
            Self::Nothing => 0,
            Self::Most if dice.happens(90) => changes,
            Self::Few if dice.happens(90) => 0,
            Self::Any | Self::Most | Self::Few => dice.place(changes),
        }
    }
}
