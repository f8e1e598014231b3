//! One moment of the model: the store, the network, three callers, and what their work writes to.

/// How many callers share the one key.
pub(super) const CALLERS: usize = 3;
/// How many requests may be astray: sent, given up on or copied, and still able to arrive.
pub(super) const ASTRAY: usize = 2;
/// A tick that never comes.
pub(super) const NEVER: u8 = u8::MAX;

/// A record or draft in the [`Book`](super::book::Book); zero stands for none.
pub(super) type Page = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The store's clock, in ticks.
    pub(super) now: u8,
    pub(super) record: Page,
    /// From when on the store may sweep the record.
    pub(super) sweep_at: u8,
    /// The last version that the store handed out.
    pub(super) version: u8,
    /// The greatest fence that any run was granted.
    pub(super) fence_max: u8,
    pub(super) callers: [Caller; CALLERS],
    pub(super) astray: [Option<Request>; ASTRAY],
    /// Crashes, lost replies, requests given up on and copies made on the way that may still happen.
    pub(super) mishaps_left: u8,
    /// How often a person may still decide about what is held.
    pub(super) resolves_left: u8,
    /// The last write that the fence-checking resource took.
    pub(super) accepted: Accepted,
    pub(super) acknowledged: Option<Acknowledged>,
}

/// A write of a run, under the fence that it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Accepted {
    pub(super) fence: u8,
    /// The permit behind it.
    pub(super) by: u8,
}

/// The outcome that a caller was told is done, for as long as it is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Acknowledged {
    pub(super) permit: u8,
    pub(super) since: u8,
    pub(super) until: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    /// Who it is in this life: the caller's own number, or that and [`CALLERS`] after a crash.
    pub(super) permit: u8,
    /// What it is doing.
    pub(super) doing: Doing,
    /// What it waits for, if anything.
    pub(super) pending: Option<Pending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    /// It has not been told anything yet.
    Asking,
    /// It was told to run and does, whether or not it still should.
    Running {
        /// The record as it was last told.
        record: Page,
        /// The store's now when it was last told.
        heard_at: u8,
        wrote: Wrote,
    },
    /// Its work is over and it wants that on record.
    Settling,
    /// It was told to come back; it does when time has passed.
    Waiting { since: u8 },
    /// It has nothing left to do.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wrote {
    NotYet,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) reply: Option<Reply>,
}

/// A swap on its way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) permit: u8,
    pub(super) ask: Ask,
    /// What the caller is told if the swap takes.
    pub(super) answer: Answer,
    pub(super) draft: Page,
    /// Zero: there must be no record.
    pub(super) expected: u8,
}

/// What the store answered, and when by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reply {
    pub(super) swapped: Swapped,
    pub(super) record: Page,
    pub(super) now: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Swapped {
    Took,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    Claim,
    Complete,
    Release,
    Renew,
    ResolveDone,
    ResolveRelease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Run,
    Replay,
    Busy,
    Mismatch,
    Held,
    Done,
    Released,
    Renewed,
    Resolved,
    /// The permit holds nothing any more.
    Lost,
}

impl Caller {
    pub(super) fn has_asked(&self) -> bool {
        self.doing != Doing::Asking || self.pending.is_some() || usize::from(self.permit) > CALLERS
    }
}

impl State {
    pub(super) fn first(callers: u8, mishaps: u8) -> Self {
        let caller = |permit| {
            let doing = if permit <= callers { Doing::Asking } else { Doing::Over };
            Caller { permit, doing, pending: None }
        };
        Self {
            now: 0,
            record: 0,
            sweep_at: NEVER,
            version: 0,
            fence_max: 0,
            callers: [caller(1), caller(2), caller(3)],
            astray: [None; ASTRAY],
            mishaps_left: mishaps,
            resolves_left: 1,
            accepted: Accepted { fence: 0, by: 0 },
            acknowledged: None,
        }
    }

    /// Lets a request go astray; without room it is lost on the way.
    pub(super) fn stray(&mut self, request: Request) {
        if let Some(room) = self.astray.iter_mut().find(|room| room.is_none()) {
            *room = Some(request);
        }
        self.sort_astray();
    }

    /// What is astray has no order, so states that differ in it alone are one.
    pub(super) fn sort_astray(&mut self) {
        self.astray.sort_by_key(|request| request.map(|r| (r.permit, r.draft, r.expected, r.ask as u8)));
    }
}
