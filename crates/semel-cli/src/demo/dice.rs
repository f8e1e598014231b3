//! Who has which bad moment: decided by a seed, so that the same seed has the same mishaps.

use std::collections::BTreeSet;

/// Dice that always fall the same way for the same throw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice {
    seed: u64,
}

/// What the API does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// Charges, and says so.
    Fine,
    /// Has no time, charges nothing, and says so.
    Overworked,
    /// Charges, and hangs up before it said so.
    Forgetful,
}

/// What the client does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Waits for the answer, and reads it.
    Waits,
    /// Hangs up while it is being charged.
    HangsUp,
    /// Loses the answer after it was sent: a phone in a tunnel.
    LosesAnswer,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// What the API does when it sees a payment for the n-th time.
    pub(super) fn mood(self, payment: u64, visit: u64) -> Mood {
        match self.hundredth(1, payment, visit) {
            0..8 => Mood::Overworked,
            8..11 => Mood::Forgetful,
            _ => Mood::Fine,
        }
    }

    /// What the client does at its n-th try. Nobody is unlucky for ever.
    pub(super) fn patience(self, payment: u64, attempt: u64) -> Patience {
        match self.hundredth(2, payment, attempt) {
            0..14 if attempt < 4 => Patience::LosesAnswer,
            14..24 if attempt < 4 => Patience::HangsUp,
            _ => Patience::Waits,
        }
    }

    /// Whether the client uses its key again afterwards, for another amount.
    pub(super) fn reuses_key(self, payment: u64) -> bool {
        self.hundredth(3, payment, 0) < 6
    }

    /// From 0 to 99.
    fn hundredth(self, who: u64, payment: u64, turn: u64) -> u64 {
        let throw = [who, payment, turn].iter().fold(self.seed, |state, part| mixed(state ^ mixed(*part)));
        throw % 100
    }
}

/// The payments during whose charges the proxy is killed: one of thirty, three at most, spread evenly.
pub(super) fn proxy_dies_during(payments: u64) -> BTreeSet<u64> {
    let kills = (payments / 30).clamp(1, 3);
    let between = kills.saturating_add(1);
    let place = |kill| payments.saturating_mul(kill).checked_div(between).unwrap_or_default();
    (1..=kills).map(|kill| place(kill).saturating_add(1)).collect()
}

/// `SplitMix64`: neighbouring numbers become numbers that have nothing to do with each other.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_tells_the_same_story_and_another_tells_another() {
        let story = |seed| (0..100).map(|payment| Dice::new(seed).patience(payment, 1)).collect::<Vec<_>>();
        assert_eq!(story(7), story(7));
        assert_ne!(story(7), story(8));
    }

    #[test]
    fn every_bad_moment_comes_about_as_often_as_it_should() {
        let throws = || (0..10_000).map(|payment| (payment, Dice::new(1)));
        let moods = |mood| throws().filter(|(payment, dice)| dice.mood(*payment, 1) == mood).count();
        let clients =
            |patience| throws().filter(|(payment, dice)| dice.patience(*payment, 1) == patience).count();
        let reused = throws().filter(|(payment, dice)| dice.reuses_key(*payment)).count();
        for (found, percent) in [
            (moods(Mood::Overworked), 8),
            (moods(Mood::Forgetful), 3),
            (clients(Patience::LosesAnswer), 14),
            (clients(Patience::HangsUp), 10),
            (reused, 6),
        ] {
            assert!(found.abs_diff(percent * 100) < 150, "{found} of 10000 for {percent} %");
        }
    }

    #[test]
    fn the_proxy_is_killed_at_least_once_and_three_times_at_most() {
        let killed = |payments| proxy_dies_during(payments).into_iter().collect::<Vec<_>>();
        assert_eq!((killed(1), killed(5)), (vec![1], vec![3]));
        assert_eq!((killed(60), killed(100)), (vec![21, 41], vec![26, 51, 76]));
        assert_eq!(killed(100_000), [25_001, 50_001, 75_001]);
    }

    #[test]
    fn nobody_is_unlucky_for_ever() {
        assert!((0..1000).all(|payment| Dice::new(3).patience(payment, 4) == Patience::Waits));
    }
}
