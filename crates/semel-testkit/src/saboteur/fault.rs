//! What can be wrong with a store.

use semel::Key;
use semel::clock::Timestamp;
use semel::record::{Keep, Record, StateKind};
use semel::store::{Page, Scan, Swept};

/// One thing that is wrong with a store; all else is as it should be.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    /// Records are not handed back as they are.
    Shown(fn(&mut Record)),
    /// The store's now is not the present; the count of answers so far tells it how wrong to be.
    Now(fn(Timestamp, u64) -> Timestamp),
    /// Records are not kept as asked; what was asked for before is known.
    Kept(fn(Option<Keep>, Keep) -> Keep),
    /// Versions are numbered in a way of their own.
    Versions(Numbering),
    /// Keys that give the same text share a record.
    Shared(fn(&Key) -> String),
    /// Swaps go wrong.
    Swap(SwapFault),
    /// Loads go wrong.
    Load(LoadFault),
    /// Sweeps do not heed their limit.
    Swept(fn(usize) -> usize),
    /// Sweeps do not say what they did.
    Told(fn(&mut Swept)),
    /// Scans look for something else.
    Scan(fn(&mut Scan)),
    /// Scans have an idea of their own of which states a record is in.
    States(fn(&[StateKind], &Record, Timestamp) -> bool),
    /// Pages do not hold what was found.
    Page(fn(&mut Page)),
}

/// How versions are numbered.
#[derive(Clone, Copy)]
pub(super) enum Numbering {
    /// Every write has a smaller one.
    Shrinking,
    /// The count starts over with every life of a record.
    Restarting,
}

/// How swaps go wrong.
#[derive(Clone, Copy)]
pub(super) enum SwapFault {
    /// Acknowledged, and not stored.
    Dropped,
    /// A swap of an absent record always wins.
    AbsentAnyway,
    /// A swap of a present record always wins.
    PresentAnyway,
    /// A stale swap counts itself on the record.
    StaleCounted,
    /// A stale swap starts the keep anew.
    StaleKept,
    /// A stale swap is not told what won.
    StaleBlind,
    /// A stale swap is handed its own draft.
    StaleFlattered,
    /// One stale swap undoes its batch.
    AllOrNothing,
    /// The answers come in another order.
    Reversed,
    /// The swaps of a batch are checked before any of them is made.
    CheckedUpFront,
    /// Between the check and the write there is time for somebody else.
    CheckedThenSet,
    /// Records are locked in the order in which they are named.
    LockedAsNamed,
    /// An empty batch is an error.
    EmptyRefused,
    /// A key whose record was there once cannot be made again.
    NeverAgain,
}

/// How loads go wrong.
#[derive(Clone, Copy)]
pub(super) enum LoadFault {
    /// The answers come in another order.
    Reversed,
    /// What is absent is left out.
    AbsentLeftOut,
    /// What is asked for twice is answered once.
    Deduplicated,
    /// Looking counts.
    Counted,
}
