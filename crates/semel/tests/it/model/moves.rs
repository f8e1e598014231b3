//! Everything that can happen next: messages arrive, get lost or come twice, callers work and crash.

use std::collections::HashSet;

use semel::Lapse;

use super::book::{Book, LEASE_TICKS, PERSON, RETENTION_TICKS, permit_of, tick};
use super::rules::{Broken, check_answer, check_state, check_write, done, running};
use super::state::{
    ASTRAY, Accepted, Acknowledged, Answer, Ask, CALLERS, Doing, NEVER, Page, Pending, Reply, Request, State,
    Swapped, Wrote,
};

/// What is wrong with this world, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The store swaps whatever it is sent.
    SwapsBlindly,
    /// `complete` takes any run for its own.
    CompletesAnyRun,
    /// Callers judge leases on a clock of their own that runs ahead.
    SkewedClock,
    /// The store starts its versions anew when a record was swept.
    ReusesVersions,
    /// A request that nobody waits for any more arrives after the record was swept.
    DeliversTheForgotten,
}

/// The bounds that make the search end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) callers: u8,
    pub(super) ticks: u8,
    pub(super) mishaps: u8,
}

/// What happened, for the story of a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Move {
    Ask(usize),
    Deliver(usize),
    DeliverAndCopy(usize),
    DeliverAstray(usize),
    Hear(usize),
    LoseReply(usize),
    GiveUpWaiting(usize),
    Write(usize),
    Complete(usize),
    Release(usize),
    Renew(usize),
    Crash(usize),
    Tick,
    Sweep,
    Resolve(Ask),
}

/// Situations that the search must come across, or it shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sight {
    TakenOver,
    Told(Answer),
    GrantHeardTooLate,
    WriteFencedOff,
    PlainWriteOverAcknowledged,
    AstrayTook,
    AstrayStale,
    SweptAndRunAgain,
    RunAfterResolve,
}

pub(super) struct World {
    pub(super) book: Book,
    pub(super) lapse: Lapse,
    pub(super) fault: Fault,
    pub(super) bounds: Bounds,
    pub(super) sights: HashSet<Sight>,
}

type Next = Result<State, Broken>;

impl World {
    pub(super) fn new(lapse: Lapse, fault: Fault, bounds: Bounds) -> Self {
        Self { book: Book::new(lapse), lapse, fault, bounds, sights: HashSet::new() }
    }

    /// Every move from a state, and where it leads.
    pub(super) fn moves(&mut self, state: &State, out: &mut Vec<(Move, Next)>) {
        for caller in 0..CALLERS {
            self.moves_of(state, caller, out);
        }
        for slot in 0..state.astray.len() {
            if state.astray[slot].is_some() {
                out.push((Move::DeliverAstray(slot), self.deliver_astray(*state, slot)));
            }
        }
        if state.now < self.bounds.ticks {
            out.push((Move::Tick, Ok(tick_on(*state))));
        }
        if state.sweep_at <= state.now {
            out.push((Move::Sweep, self.sweep(*state)));
        }
        if state.resolves_left > 0 {
            for ask in [Ask::ResolveDone, Ask::ResolveRelease] {
                if let Some(next) = self.resolve(*state, ask) {
                    out.push((Move::Resolve(ask), next));
                }
            }
        }
        for (_, next) in out.iter_mut() {
            *next = next.and_then(|next| check_state(&self.book, &next).map(|()| next));
        }
    }

    fn moves_of(&mut self, state: &State, at: usize, out: &mut Vec<(Move, Next)>) {
        let caller = state.callers[at];
        match caller.pending {
            Some(Pending { request, reply: None }) => {
                out.push((Move::Deliver(at), self.deliver(*state, at, request)));
                if state.mishaps_left > 0 && state.astray.iter().any(Option::is_none) {
                    let mut copied = *state;
                    copied.mishaps_left -= 1;
                    copied.stray(request);
                    out.push((Move::DeliverAndCopy(at), self.deliver(copied, at, request)));
                }
                if state.mishaps_left > 0 {
                    let mut next = self.ask_again(*state, at);
                    next.stray(request);
                    out.push((Move::GiveUpWaiting(at), Ok(next)));
                }
            }
            Some(Pending { request, reply: Some(reply) }) => {
                out.push((Move::Hear(at), self.hear(*state, at, request, reply)));
                if state.mishaps_left > 0 {
                    out.push((Move::LoseReply(at), Ok(self.ask_again(*state, at))));
                }
            }
            None => self.moves_of_the_idle(state, at, out),
        }
        if let Doing::Running { wrote: Wrote::NotYet, .. } = caller.doing {
            out.push((Move::Write(at), Ok(self.write(*state, at))));
        }
        let in_midst = caller.pending.is_some() || matches!(caller.doing, Doing::Running { .. });
        if in_midst && state.mishaps_left > 0 && usize::from(caller.permit) <= CALLERS {
            out.push((Move::Crash(at), Ok(crash(*state, at))));
        }
    }

    fn moves_of_the_idle(&mut self, state: &State, at: usize, out: &mut Vec<(Move, Next)>) {
        match state.callers[at].doing {
            // Callers are alike, so it is enough that they come in their order.
            Doing::Asking if at == 0 || state.callers[at - 1].has_asked() => {
                out.push((Move::Ask(at), Ok(self.send_first_claim(*state, at))));
            }
            Doing::Waiting { since } if state.now > since => {
                out.push((Move::Ask(at), Ok(self.send_first_claim(*state, at))));
            }
            Doing::Running { record, heard_at, wrote } => {
                let mut settling = *state;
                settling.callers[at].doing = Doing::Settling;
                let (end, step) = match wrote {
                    Wrote::Yes => (Ask::Complete, Move::Complete(at)),
                    Wrote::NotYet => (Ask::Release, Move::Release(at)),
                };
                out.push((step, self.judge(settling, at, end, record, heard_at)));
                // A renewal that wins no time only makes more versions.
                if state.now > heard_at {
                    out.push((Move::Renew(at), self.judge(*state, at, Ask::Renew, record, heard_at)));
                }
            }
            Doing::Asking | Doing::Waiting { .. } | Doing::Settling | Doing::Over => {}
        }
    }

    /// The first try is made without looking: most keys are new.
    fn send_first_claim(&mut self, mut state: State, at: usize) -> State {
        let permit = state.callers[at].permit;
        let (answer, draft) = self.book.rule(Ask::Claim, permit, 0, state.now);
        let request = Request { permit, ask: Ask::Claim, answer, draft, expected: 0 };
        state.callers[at].doing = Doing::Asking;
        state.callers[at].pending = Some(Pending { request, reply: None });
        state
    }

    /// A reply that did not come is unknown, never failed: the same ask again, under the same permit.
    fn ask_again(&mut self, mut state: State, at: usize) -> State {
        state.mishaps_left -= 1;
        match state.callers[at].pending {
            Some(Pending { request, .. }) if request.ask != Ask::Claim => {
                state.callers[at].pending = Some(Pending { request, reply: None });
                state
            }
            _ => self.send_first_claim(state, at),
        }
    }

    fn deliver(&mut self, mut state: State, at: usize, request: Request) -> Next {
        let reply = self.swap(&mut state, request)?;
        state.callers[at].pending = Some(Pending { request, reply: Some(reply) });
        Ok(state)
    }

    fn deliver_astray(&mut self, mut state: State, slot: usize) -> Next {
        let Some(request) = state.astray[slot].take() else { return Ok(state) };
        state.sort_astray();
        let reply = self.swap(&mut state, request)?;
        self.sights.insert(match reply.swapped {
            Swapped::Took => Sight::AstrayTook,
            Swapped::Stale => Sight::AstrayStale,
        });
        Ok(state)
    }

    /// The store: replaces the record only if it is still at the expected version.
    fn swap(&mut self, state: &mut State, request: Request) -> Result<Reply, Broken> {
        let current = self.book.version(state.record);
        if request.expected != current && self.fault != Fault::SwapsBlindly {
            return Ok(Reply { swapped: Swapped::Stale, record: state.record, now: state.now });
        }
        let version = state.version + 1;
        let (record, sweep_at) = self.book.stamp(request.draft, version, state.now);
        check_write(&self.book, state, record, request, self.lapse)?;
        self.note_grant(state, record, version);
        (state.version, state.record, state.sweep_at) = (version, record, sweep_at);
        Ok(Reply { swapped: Swapped::Took, record, now: state.now })
    }

    fn note_grant(&mut self, state: &mut State, record: Page, version: u8) {
        let granted = self.book.record(record).and_then(running);
        if granted.is_none_or(|run| run.grant.fence.get() != u64::from(version)) {
            return;
        }
        if self.book.record(state.record).and_then(running).is_some() {
            self.sights.insert(Sight::TakenOver);
        }
        if state.resolves_left == 0 {
            self.sights.insert(Sight::RunAfterResolve);
        }
        if state.record == 0 && version > 1 {
            self.sights.insert(Sight::SweptAndRunAgain);
        }
        state.fence_max = version;
    }

    fn hear(&mut self, mut state: State, at: usize, request: Request, reply: Reply) -> Next {
        state.callers[at].pending = None;
        match reply.swapped {
            Swapped::Took => self.tell(state, at, request.answer, reply.record, reply.now),
            Swapped::Stale => {
                let skew = if self.fault == Fault::SkewedClock { LEASE_TICKS } else { 0 };
                self.judge(state, at, request.ask, reply.record, reply.now + skew)
            }
        }
    }

    /// Rules on a record as the caller knows it: either there is something to write first, or to tell.
    fn judge(&mut self, mut state: State, at: usize, ask: Ask, found: Page, now: u8) -> Next {
        let permit = state.callers[at].permit;
        let holder = self.book.record(found).and_then(running).map(|run| permit_of(run.grant.permit_id));
        let judged_as = match holder {
            Some(holder) if ask == Ask::Complete && self.fault == Fault::CompletesAnyRun => holder,
            _ => permit,
        };
        let (answer, draft) = self.book.rule(ask, judged_as, found, now);
        if draft == 0 {
            return self.tell(state, at, answer, found, now);
        }
        let expected = self.book.version(found);
        let request = Request { permit, ask, answer, draft, expected };
        state.callers[at].pending = Some(Pending { request, reply: None });
        Ok(state)
    }

    fn tell(&mut self, mut state: State, at: usize, answer: Answer, record: Page, now: u8) -> Next {
        let caller = state.callers[at];
        check_answer(&self.book, &state, caller.permit, answer, record, now)?;
        self.sights.insert(Sight::Told(answer));
        state.callers[at].doing = match (answer, caller.doing) {
            (Answer::Run, _) => {
                if self
                    .book
                    .record(record)
                    .and_then(running)
                    .is_some_and(|run| state.now >= tick(run.lease_until()))
                {
                    self.sights.insert(Sight::GrantHeardTooLate);
                }
                Doing::Running { record, heard_at: now, wrote: Wrote::NotYet }
            }
            (Answer::Renewed, Doing::Running { wrote, .. }) => {
                Doing::Running { record, heard_at: now, wrote }
            }
            (Answer::Busy, _) => Doing::Waiting { since: state.now },
            _ => Doing::Over,
        };
        if answer == Answer::Done {
            self.acknowledge(&mut state, record);
        }
        Ok(state)
    }

    fn acknowledge(&mut self, state: &mut State, record: Page) {
        let Some(done) = self.book.record(record).and_then(done) else { return };
        let since = tick(done.settled_at);
        let until = since + RETENTION_TICKS;
        if state.now < until {
            state.acknowledged = Some(Acknowledged { permit: permit_of(done.grant.permit_id), since, until });
        }
    }

    /// The work writes, however late: to a resource that takes only fences above the last, and to one that
    /// takes anything.
    fn write(&mut self, mut state: State, at: usize) -> State {
        let Doing::Running { record, heard_at, .. } = state.callers[at].doing else { return state };
        let permit = state.callers[at].permit;
        state.callers[at].doing = Doing::Running { record, heard_at, wrote: Wrote::Yes };
        let fence = self.book.record(record).and_then(running).map_or(0, |run| run.grant.fence.get());
        match u8::try_from(fence) {
            Ok(fence) if fence > state.accepted.fence => state.accepted = Accepted { fence, by: permit },
            _ => _ = self.sights.insert(Sight::WriteFencedOff),
        }
        // The other resource needs no state: it takes this write, whatever it holds.
        if state.acknowledged.is_some_and(|known| known.permit != permit) {
            self.sights.insert(Sight::PlainWriteOverAcknowledged);
        }
        state
    }

    fn sweep(&mut self, mut state: State) -> Next {
        if self.book.is_live(state.record, state.now) {
            return Err("a live record was swept");
        }
        (state.record, state.sweep_at) = (0, NEVER);
        if self.fault != Fault::DeliversTheForgotten {
            state.astray = [None; ASTRAY];
        }
        if self.fault == Fault::ReusesVersions {
            state.version = 0;
        }
        Ok(state)
    }

    /// A person decides about what is held, and wins the swap.
    fn resolve(&mut self, mut state: State, ask: Ask) -> Option<Next> {
        let (answer, draft) = self.book.rule(ask, PERSON, state.record, state.now);
        if draft == 0 {
            return None;
        }
        state.resolves_left -= 1;
        let expected = self.book.version(state.record);
        let request = Request { permit: PERSON, ask, answer, draft, expected };
        Some(self.swap(&mut state, request).map(|_| state))
    }
}

fn tick_on(mut state: State) -> State {
    state.now += 1;
    state.acknowledged = state.acknowledged.filter(|known| state.now < known.until);
    state
}

/// The caller forgets everything and comes back as somebody new; what it sent may still arrive.
fn crash(mut state: State, at: usize) -> State {
    state.mishaps_left -= 1;
    let caller = &mut state.callers[at];
    caller.permit += u8::try_from(CALLERS).unwrap();
    caller.doing = Doing::Asking;
    if let Some(Pending { request, reply: None }) = caller.pending.take() {
        state.stray(request);
    }
    state
}
