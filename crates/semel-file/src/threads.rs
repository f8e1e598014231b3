//! Work that is split over a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle, scope};

/// What `work` returns for every number below `count`, in order; on so many threads, the caller's included.
pub(crate) fn on_threads<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads < 2 || count < 2 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take_part = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let numbers = numbers.take_while(|number| *number < count);
        numbers.map(|number| (number, work(number))).collect::<Vec<_>>()
    };
    let mut all = scope(|scope| {
        // Without another thread, this one does it all.
        let spawn = |_| Builder::new().spawn_scoped(scope, take_part).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut all = take_part();
        all.extend(others.into_iter().flat_map(joined));
        all
    });
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, done)| done).collect()
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_worked_on_once_and_results_are_in_order() {
        for (threads, count) in [(1, 5), (2, 0), (2, 1), (2, 1_000), (8, 3)] {
            let done = on_threads(threads, count, |number| number * 2);
            assert_eq!(done, (0..count).map(|number| number * 2).collect::<Vec<_>>());
        }
    }
}
