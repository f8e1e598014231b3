//! Who waits in this process for another caller's run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use crate::id_map::IdMap;
use crate::key::RecordId;
use crate::lock::lock;

/// The waiting callers, by the record that they wait for.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<IdMap<Waiting>>,
    /// Lets a settle see without a lock that no caller waits.
    count: AtomicUsize,
    /// The same for those who want to be notified of it.
    watched: watch::Sender<usize>,
}

struct Waiting {
    settled: Arc<Notify>,
    /// Counted under the lock, so that of several callers that leave at once the last one removes the entry.
    callers: usize,
}

impl Waiters {
    /// Wakes the callers that wait for this record.
    pub(super) fn wake(&self, id: &RecordId) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(waiting) = lock(&self.waiting).get(id) {
            waiting.settled.notify_waiters();
        }
    }

    /// Joins the callers that wait for this record, until the place is dropped.
    pub(super) fn join(&self, id: RecordId) -> WaitingPlace<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.watched.send_modify(|count| *count = count.saturating_add(1));
        let mut waiting = lock(&self.waiting);
        let entry = waiting.entry(id).or_insert_with(|| Waiting { settled: Arc::default(), callers: 0 });
        entry.callers = entry.callers.saturating_add(1);
        WaitingPlace { waiters: self, id, settled: Arc::clone(&entry.settled) }
    }

    /// How many callers wait, now and from now on.
    pub(super) fn watch(&self) -> watch::Receiver<usize> {
        self.watched.subscribe()
    }

    #[cfg(test)]
    fn records(&self) -> usize {
        lock(&self.waiting).len()
    }
}

/// One caller's place among the waiters.
pub(super) struct WaitingPlace<'a> {
    waiters: &'a Waiters,
    id: RecordId,
    pub(super) settled: Arc<Notify>,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiters.waiting);
        if let Some(entry) = waiting.get_mut(&self.id) {
            entry.callers = entry.callers.saturating_sub(1);
            if entry.callers == 0 {
                waiting.remove(&self.id);
            }
        }
        drop(waiting);
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
        self.waiters.watched.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RecordId = RecordId::from_bytes([7; 32]);

    #[test]
    fn callers_that_leave_at_once_leave_no_entry_behind() {
        let waiters = Waiters::default();
        for _ in 0..200 {
            let places: Vec<_> = (0..4).map(|_| waiters.join(ID)).collect();
            let start = std::sync::Barrier::new(places.len());
            std::thread::scope(|scope| {
                for place in places {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        drop(place);
                    });
                }
            });
            assert_eq!((waiters.records(), waiters.count.load(Ordering::SeqCst)), (0, 0));
        }
    }

    #[tokio::test]
    async fn a_caller_that_leaves_does_not_keep_others_from_being_woken() {
        let waiters = Waiters::default();
        let (stays, leaves) = (waiters.join(ID), waiters.join(ID));
        let mut settled = std::pin::pin!(stays.settled.notified());
        settled.as_mut().enable();
        drop(leaves);
        waiters.wake(&ID);
        settled.await;
        assert_eq!(*waiters.watch().borrow(), 1);
    }
}
