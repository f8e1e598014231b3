//! An order, or why there is none.

/// What a history shows. Events are named by their place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In this order the machine gives every answer. Lost replies that are not in it took no effect.
    Linearizable {
        /// One such order.
        order: Vec<usize>,
    },
    /// There is no such order.
    Violation {
        /// The longest beginning of an order that was found.
        prefix: Vec<usize>,
        /// What stands in the way of each event that could come next, in words for people.
        explanation: String,
    },
    /// The search was given up; look at a shorter history.
    Undecided {
        /// How many states were looked at.
        states: usize,
        /// How far it came, in words for people.
        explanation: String,
    },
}

impl Verdict {
    /// Whether an order was found.
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Self::Linearizable { .. })
    }

    /// Whether there is none.
    pub fn is_violation(&self) -> bool {
        matches!(self, Self::Violation { .. })
    }
}
