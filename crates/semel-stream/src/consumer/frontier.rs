//! Up to where everything is done.

use std::collections::{BTreeMap, VecDeque};

use semel::machine::offset::Position;

/// What was delivered of one stream and is not yet committed. The offset may go up to where everything delivered is
/// done, and no further, in whatever order events end.
pub(super) struct Frontier<M> {
    /// Delivered, and behind something that is not done: with its mark once it is done itself.
    open: BTreeMap<Position, Option<M>>,
    /// Done without a gap, and not yet committed.
    passed: VecDeque<(Position, M)>,
    /// Up to where everything is done.
    reached: Option<Position>,
}

impl<M> Frontier<M> {
    /// Everything up to here is committed already.
    pub(super) fn behind(committed: Option<Position>) -> Self {
        Self { open: BTreeMap::new(), passed: VecDeque::new(), reached: committed }
    }

    /// Something was delivered. What was passed before changes nothing.
    pub(super) fn deliver(&mut self, position: Position) {
        if self.reached.is_none_or(|reached| position > reached) {
            self.open.entry(position).or_insert(None);
        }
    }

    /// Something is done. Hands the mark back where there is nothing to wait for: it was done before.
    pub(super) fn done(&mut self, position: Position, mark: M) -> Option<M> {
        match self.open.get_mut(&position) {
            Some(open @ None) => *open = Some(mark),
            Some(Some(_)) | None => return Some(mark),
        }
        while let Some(first) = self.open.first_entry() {
            if first.get().is_none() {
                break;
            }
            let (position, mark) = first.remove_entry();
            self.reached = Some(position);
            self.passed.extend(mark.map(|mark| (position, mark)));
        }
        None
    }

    /// What a commit would commit: the last that is done without a gap, unless it is committed.
    pub(super) fn to_commit(&self) -> Option<&(Position, M)> {
        self.passed.back()
    }

    /// How many events a commit would cover.
    pub(super) fn uncommitted(&self) -> u64 {
        u64::try_from(self.passed.len()).unwrap_or(u64::MAX)
    }

    /// Everything up to here is committed: their marks.
    pub(super) fn committed(&mut self, position: Position) -> Vec<M> {
        let covered = self.passed.iter().take_while(|(at, _)| *at <= position).count();
        self.passed.drain(..covered).map(|(_, mark)| mark).collect()
    }

    /// Whether everything before this position is done.
    pub(super) fn is_next(&self, position: Position) -> bool {
        self.open.first_key_value().is_some_and(|(first, _)| *first == position)
    }

    /// How many events are done or running behind one that is not done.
    pub(super) fn ahead(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: u128) -> Position {
        Position::new(position)
    }

    fn delivered(positions: &[u128]) -> Frontier<u128> {
        let mut frontier = Frontier::behind(None);
        for position in positions {
            frontier.deliver(at(*position));
        }
        frontier
    }

    fn would_commit(frontier: &Frontier<u128>) -> Option<u128> {
        frontier.to_commit().map(|(position, _)| position.get())
    }

    #[test]
    fn nothing_is_passed_before_everything_below_is_done() {
        let mut frontier = delivered(&[1, 2, 5, 9]);
        assert_eq!(frontier.done(at(9), 9), None);
        assert_eq!(frontier.done(at(2), 2), None);
        assert_eq!(would_commit(&frontier), None);
        frontier.done(at(1), 1);
        assert_eq!(would_commit(&frontier), Some(2), "5 is not done");
        frontier.done(at(5), 5);
        assert_eq!((would_commit(&frontier), frontier.uncommitted()), (Some(9), 4));
    }

    #[test]
    fn what_is_committed_hands_its_marks_back_once() {
        let mut frontier = delivered(&[1, 2, 3]);
        for position in [1, 2, 3] {
            frontier.done(at(position), position);
        }
        assert_eq!(frontier.committed(at(2)), [1, 2]);
        assert_eq!(frontier.committed(at(2)), [] as [u128; 0]);
        assert_eq!(frontier.committed(at(7)), [3]);
        assert_eq!(would_commit(&frontier), None);
    }

    #[test]
    fn an_event_that_comes_again_holds_nothing_up() {
        let mut frontier = delivered(&[1, 2]);
        frontier.done(at(1), 1);
        frontier.deliver(at(1));
        assert_eq!(frontier.done(at(1), 7), Some(7), "passed before");
        frontier.deliver(at(2));
        frontier.done(at(2), 2);
        assert_eq!(would_commit(&frontier), Some(2));
        let mut resumed = Frontier::behind(Some(at(5)));
        resumed.deliver(at(4));
        assert_eq!(resumed.done(at(4), 4), Some(4));
        assert_eq!(resumed.ahead(), 0);
    }
}
