//! Forgets what is past its keep, a bounded part at a time. Nothing is written for it: the next opening judges by the same
//! keeps.
//!
//! A pass goes once through all groups of entries, from the last to the first of each shard: what a removal moves was
//! visited before. The index knows which groups have nothing that is due, so most of them cost a comparison.

use std::collections::VecDeque;

use semel::clock::Timestamp;
use semel::store::Swept;

use crate::index::entry::{Due, Kept};
use crate::index::{Entry, GROUP, SHARDS};
use crate::reader::Reader;
use crate::writer::requests::{SweepRequest, answer, refuse};

/// How much one step does: callers wait meanwhile. A visited group is dearer than one that is skipped.
const STEP_WORK: usize = 1 << 16;
const SKIPPED_GROUP_WORK: usize = 1;
const VISITED_GROUP_WORK: usize = 1 << 11;
/// How many frames one step reads, for records whose keep ends in this very second.
const STEP_READS: usize = 32;
/// How many frames one pass reads. The rest is for the next sweep, when the second is over and nothing need be read.
const PASS_READS: usize = 256;
/// For how many turns nothing is moved after a sweep that left more: the next part of it should be here by then.
const REST_TURNS: u32 = 64;

/// The sweeps that were asked for, and how far the first of them has come.
#[derive(Default)]
pub(crate) struct Sweeper {
    waiting: VecDeque<SweepRequest>,
    cursor: Cursor,
    pass: Pass,
    rest_turns: u32,
}

/// Where the next group is looked for. It stays where it is between sweeps, so that each part of the index has its turn.
struct Cursor {
    shard: u8,
    /// Before this place of the shard.
    end: usize,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { shard: 0, end: usize::MAX }
    }
}

/// What is left of the present pass.
struct Pass {
    shards: usize,
    reads: usize,
}

impl Default for Pass {
    fn default() -> Self {
        // The shard that a pass begins in the middle of is its last one, too.
        Self { shards: SHARDS.saturating_add(1), reads: PASS_READS }
    }
}

/// How much the present step may still do.
struct Budget {
    work: usize,
    reads: usize,
}

/// Why a step ended.
enum StepEnd {
    /// It has done enough: the next step goes on.
    Bounded,
    /// The pass is through.
    Through,
    /// The caller wants no more removed, and there is more that is past its keep.
    Limited,
}

impl Sweeper {
    pub(crate) fn push(&mut self, request: SweepRequest) {
        self.waiting.push_back(request);
    }

    /// Whether no sweep waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the rest of a sweep will be asked for in a moment: to sleep and be woken would take longer.
    pub(crate) fn expects_more(&self) -> bool {
        self.rest_turns > 0
    }

    /// Whether a sweep is at work, or will be in a moment: nothing should be moved that it may forget.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.is_idle() || self.expects_more()
    }

    /// The next turn of the writer begins.
    pub(crate) fn begin_turn(&mut self) {
        self.rest_turns = self.rest_turns.saturating_sub(1);
    }

    /// Goes on with the first sweep that waits; `forgotten` is shown every entry that is removed.
    pub(crate) fn step(&mut self, reader: &Reader, mut forgotten: impl FnMut(&Entry)) {
        let Some(mut request) = self.waiting.pop_front() else { return };
        if let Err(error) = reader.health.check() {
            self.pass = Pass::default();
            return refuse(request.caller, error);
        }
        let now = reader.clock.now();
        match self.go_on(&mut request, reader, now, &mut forgotten) {
            StepEnd::Bounded => self.waiting.push_front(request),
            StepEnd::Through => self.end_pass(request, now, 0),
            StepEnd::Limited => self.end_pass(request, now, REST_TURNS),
        }
    }

    /// Answers the caller. More is left if the next part of the sweep is worth a rest.
    fn end_pass(&mut self, request: SweepRequest, now: Timestamp, rest_turns: u32) {
        self.pass = Pass::default();
        self.rest_turns = rest_turns;
        answer(request.caller, now, Swept { removed: request.removed, more_left: rest_turns > 0 });
    }

    fn go_on(
        &mut self,
        request: &mut SweepRequest,
        reader: &Reader,
        now: Timestamp,
        forgotten: &mut impl FnMut(&Entry),
    ) -> StepEnd {
        let mut budget = Budget { work: STEP_WORK, reads: STEP_READS };
        // Also what ends in this second: its frame says when.
        let latest = Due::past(now).next();
        while budget.work > 0 {
            let Cursor { shard, end } = self.cursor;
            let found = reader.index.due_before(shard, end, latest);
            let skipped = found.skipped.saturating_mul(SKIPPED_GROUP_WORK);
            budget.work = budget.work.saturating_sub(skipped.saturating_add(SKIPPED_GROUP_WORK));
            let Some(group) = found.group else {
                if !self.next_shard() {
                    return StepEnd::Through;
                }
                continue;
            };
            budget.work = budget.work.saturating_sub(VISITED_GROUP_WORK);
            for (place, entry) in &found.entries {
                match self.judge(entry, reader, now, &mut budget) {
                    SweepDecision::Keep => {}
                    SweepDecision::LookLater => return StepEnd::Bounded,
                    SweepDecision::Remove if request.removed >= request.limit => return StepEnd::Limited,
                    SweepDecision::Remove => {
                        request.removed = request.removed.saturating_add(1);
                        reader.index.remove(&entry.id).iter().for_each(&mut *forgotten);
                    }
                }
                self.cursor.end = *place;
            }
            reader.index.refresh_earliest(shard, group);
            self.cursor.end = group.saturating_mul(GROUP);
        }
        StepEnd::Bounded
    }

    /// Goes on to the next shard; `false` at the end of the pass.
    fn next_shard(&mut self) -> bool {
        self.cursor = Cursor { shard: self.cursor.shard.wrapping_add(1), end: usize::MAX };
        self.pass.shards = self.pass.shards.saturating_sub(1);
        self.pass.shards > 0
    }

    /// Whether an entry goes. One that cannot be read stays until the second is over, when it need not be read for that: it
    /// must not keep the others.
    fn judge(
        &mut self,
        entry: &Entry,
        reader: &Reader,
        now: Timestamp,
        budget: &mut Budget,
    ) -> SweepDecision {
        match entry.kept_at(now) {
            Kept::No => SweepDecision::Remove,
            Kept::Yes => SweepDecision::Keep,
            Kept::Look if self.pass.reads == 0 => SweepDecision::Keep,
            Kept::Look if budget.reads == 0 => SweepDecision::LookLater,
            Kept::Look => {
                self.pass.reads = self.pass.reads.saturating_sub(1);
                budget.reads = budget.reads.saturating_sub(1);
                let is_past = reader.kept_until(entry).is_ok_and(|until| until <= now.as_micros());
                if is_past { SweepDecision::Remove } else { SweepDecision::Keep }
            }
        }
    }
}

/// What becomes of an entry.
enum SweepDecision {
    Remove,
    Keep,
    /// The next step has to look: this one has read enough.
    LookLater,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use semel::record::Keep;
    use semel::store::{Caching, Store, Swap, Swaps};
    use semel::{Key, Outcome};
    use semel_testkit::{ManualClock, sample};
    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::*;
    use crate::FileStore;
    use crate::disk::Folder;
    use crate::recovery::Recovery;
    use crate::writer::requests::Stamped;

    /// Half a millisecond into a second, so that no keep of these tests ends with one.
    const START: u64 = 1_000_000_000_500;
    const KEEP: Duration = Duration::from_secs(10);

    /// What steps of a sweep did.
    struct Steps {
        /// How many were removed and how many frames were read, step by step.
        done: Vec<(usize, usize)>,
        swept: Swept,
    }

    struct Bench {
        _folder: TempDir,
        clock: ManualClock,
        reader: Arc<Reader>,
        sweeper: Sweeper,
    }

    impl Bench {
        /// A store with so many records that are kept for so long.
        fn new(records: &[(usize, Duration)]) -> Self {
            let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(START));
            let store = FileStore::builder(&folder).clock(clock.clone()).inline().open().unwrap();
            for (number, (count, keep)) in records.iter().enumerate() {
                let swaps: Swaps = (0..*count).map(|name| swap(&format!("{number}-{name}"), *keep)).collect();
                drop(store.swap(swaps));
            }
            store.close().unwrap();
            let opened = Recovery {
                disk: Arc::new(Folder::hold(folder.path()).unwrap()),
                place: "a test".into(),
                clock: Arc::new(clock.clone()),
                caching: Caching::Refused,
                segment_bytes_max: 64 << 20,
                load_threads: 2,
            };
            let reader = opened.open().unwrap().reader;
            Self { _folder: folder, clock, reader, sweeper: Sweeper::default() }
        }

        fn sweep(&mut self, limit: usize) -> Steps {
            let (caller, mut told) = oneshot::channel();
            self.sweeper.push(SweepRequest { limit, removed: 0, caller });
            let mut done = Vec::new();
            while !self.sweeper.is_idle() {
                let (reads, mut removed) = (self.sweeper.pass.reads, 0_usize);
                self.sweeper.step(&self.reader, |_| removed = removed.saturating_add(1));
                // A pass that has ended has all its reads again.
                let read = reads.saturating_sub(self.sweeper.pass.reads);
                done.push((removed, read));
            }
            let Stamped { value: swept, .. } = told.try_recv().unwrap().unwrap();
            Steps { done, swept }
        }
    }

    fn swap(name: &str, keep: Duration) -> Swap {
        let key = Key::new("sweep", name).unwrap();
        let write = sample::done(&sample::ask(&key), &Outcome::success("done")).unwrap();
        Swap { expected: None, next: write.next, keep: Keep::For(keep) }
    }

    #[test]
    fn what_ends_within_the_second_of_a_sweep_is_read_a_little_at_a_time_and_the_rest_goes_when_the_second_is_over()
     {
        let mut bench = Bench::new(&[(3_000, KEEP)]);
        bench.clock.advance(KEEP);
        let steps = bench.sweep(usize::MAX);
        assert!(steps.done.iter().all(|(_, read)| *read <= STEP_READS), "{:?}", steps.done);
        assert_eq!((steps.swept.removed, steps.swept.more_left), (PASS_READS, false));
        bench.clock.advance(Duration::from_secs(1));
        let steps = bench.sweep(usize::MAX);
        assert_eq!((steps.swept.removed, steps.swept.more_left), (3_000 - PASS_READS, false));
        assert!(steps.done.iter().all(|(_, read)| *read == 0), "{:?}", steps.done);
        assert_eq!(bench.reader.index.len(), 0);
    }

    #[test]
    fn one_step_removes_a_bounded_number_of_records_and_goes_on_where_it_was() {
        let mut bench = Bench::new(&[(9_000, KEEP), (1_000, KEEP * 100)]);
        bench.clock.advance(KEEP * 2);
        let steps = bench.sweep(usize::MAX);
        assert!(steps.done.len() > 4 && steps.done.iter().all(|(removed, _)| *removed <= 2_112));
        assert_eq!((steps.swept.removed, steps.swept.more_left), (9_000, false));
        assert_eq!(bench.reader.index.len(), 1_000);
        assert_eq!(bench.sweep(usize::MAX).done, [(0, 0)], "what was visited once is skipped");
    }

    #[test]
    fn more_is_left_exactly_if_something_is_past_its_keep_when_the_limit_is_reached() {
        let mut bench = Bench::new(&[(100, KEEP), (100, KEEP * 100)]);
        bench.clock.advance(KEEP * 2);
        for left in [true, true, true, false] {
            let swept = bench.sweep(25).swept;
            assert_eq!((swept.removed, swept.more_left), (25, left));
            assert_eq!(bench.sweeper.is_at_work(), left, "nothing is moved while more will be asked for");
        }
        assert_eq!(bench.sweep(25).swept.removed, 0);
    }

    #[test]
    fn a_record_goes_at_the_microsecond_and_not_before() {
        let mut bench = Bench::new(&[(5, KEEP)]);
        bench.clock.advance(Duration::from_micros(9_999_999));
        assert_eq!(bench.sweep(10).swept.removed, 0);
        bench.clock.advance(Duration::from_micros(1));
        assert_eq!(bench.sweep(10).swept.removed, 5);
    }
}
