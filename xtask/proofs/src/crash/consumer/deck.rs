//! Where the victim dies next: every step as often as any other, in an order from the seed.

use crate::dice::Dice;

/// How many times a step happens before the one that is the last, at most.
const TIMES_MOST: u64 = 4;
/// When at the latest a victim dies that may die at any time, in microseconds.
const ANYTIME_MOST: u64 = 100_000;

/// A step after which the victim dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    Delivered,
    Claimed,
    Effect,
    Receipt,
    Offset,
    Acknowledged,
    Anytime,
}

impl Point {
    /// All, in the order in which they happen to an event.
    pub(super) const ALL: [Self; 7] = [
        Self::Delivered,
        Self::Claimed,
        Self::Effect,
        Self::Receipt,
        Self::Offset,
        Self::Acknowledged,
        Self::Anytime,
    ];

    /// The victim's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Claimed => "claimed",
            Self::Effect => "effect",
            Self::Receipt => "receipt",
            Self::Offset => "offset",
            Self::Acknowledged => "acknowledged",
            Self::Anytime => "anytime",
        }
    }

    /// When, as the victim is told.
    pub(super) fn fate(self, dice: &mut Dice) -> String {
        let number = match self {
            Self::Anytime => dice.number(ANYTIME_MOST),
            Self::Delivered
            | Self::Claimed
            | Self::Effect
            | Self::Receipt
            | Self::Offset
            | Self::Acknowledged => 1 + dice.number(TIMES_MOST - 1),
        };
        format!("{}:{number}", self.word())
    }
}

/// Hands out steps. Each is out once before any is out a second time.
pub(super) struct Deck {
    points: Vec<Point>,
    left: Vec<Point>,
}

impl Deck {
    pub(super) fn of(points: Vec<Point>) -> Self {
        Self { points, left: Vec::new() }
    }

    /// The next one. It stays the next until the victim has died of it.
    pub(super) fn next(&mut self, dice: &mut Dice) -> Option<Point> {
        if self.left.is_empty() {
            self.left = self.points.clone();
            dice.shuffle(&mut self.left);
        }
        self.left.last().copied()
    }

    /// The victim has died of it.
    pub(super) fn died(&mut self) {
        self.left.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_as_often_as_any_other() {
        let (mut deck, mut dice) = (Deck::of(Point::ALL.to_vec()), Dice::new(7));
        let mut times = [0; 7];
        for _ in 0..70 {
            let point = deck.next(&mut dice).unwrap();
            assert_eq!(deck.next(&mut dice), Some(point), "nobody died of it yet");
            times[Point::ALL.iter().position(|other| *other == point).unwrap()] += 1;
            deck.died();
        }
        assert_eq!(times, [10; 7]);
    }
}
