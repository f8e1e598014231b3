//! What a caller does next, drawn from a seed.

use std::time::Duration;

use crate::dice::Dice;

/// How many names are asked for again and again.
const POOL: usize = 768;

/// From how many runs that were left on there are many.
const LEFT_MANY: usize = 128;

/// One caller's choices.
pub(super) struct Choices(Dice);

/// Which key to claim.
pub(super) enum Pick {
    /// One that many ask for.
    Pooled(usize),
    /// One that nobody asked for before.
    Fresh,
    /// One that was left running, if there is any.
    Left,
}

/// How a run ends.
pub(super) enum End {
    Complete,
    Release,
    Leave,
}

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    /// Every kill leaves runs behind: where there are many, most callers go on with one of them, or there would be
    /// ever more.
    pub(super) fn pick(&mut self, left: usize) -> Pick {
        let left_percent = if left > LEFT_MANY { 70 } else { 10 };
        if self.percent() < left_percent {
            return Pick::Left;
        }
        if self.percent() < 55 { Pick::Pooled(self.0.below(POOL)) } else { Pick::Fresh }
    }

    pub(super) fn end(&mut self) -> End {
        match self.percent() {
            0..70 => End::Complete,
            70..93 => End::Release,
            _ => End::Leave,
        }
    }

    pub(super) fn permit_id(&mut self) -> u128 {
        self.0.wide()
    }

    /// Mostly shorter than a few lives, so that names come free again; now and then one that outlives many.
    pub(super) fn retention_of_pooled(&mut self) -> Duration {
        match self.percent() {
            0..60 => Duration::from_millis(300),
            60..85 => Duration::from_secs(1),
            85..97 => Duration::from_secs(4),
            _ => Duration::from_mins(1),
        }
    }

    pub(super) fn retention_of_fresh(&mut self) -> Duration {
        if self.percent() < 80 { Duration::from_millis(300) } else { Duration::from_secs(2) }
    }

    /// Mostly small; some span pages, and fill segments fast.
    pub(super) fn outcome_bytes(&mut self) -> usize {
        match self.percent() {
            0..70 => self.0.below(64),
            70..97 => 64 + self.0.below(936),
            _ => 1_000 + self.0.below(19_000),
        }
    }

    fn percent(&mut self) -> usize {
        self.0.below(100)
    }
}
