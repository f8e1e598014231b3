//! Prepares the next segment, writes hints and removes what is no longer needed, so that the writer never waits for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::hints;
use super::segment::{Segment, prepare};
use super::spare::{NoSpare, Spare, Wanted};
use crate::disk::Disk;
use crate::format::identity::StoreId;
use crate::format::name;
use crate::index::Index;

/// How long to wait before a full disk is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// What can wait.
enum Chore {
    /// A hint for a segment whose frames end here.
    Hint(Arc<Segment>, u32),
    /// The files of a segment that nobody needs.
    Remove(u32),
}

/// Who does what can wait: a thread, or whoever asks.
pub(crate) struct Maintenance {
    work: Arc<Work>,
    by: By,
}

/// Who does it.
enum By {
    /// Nobody yet.
    Nobody,
    /// Whoever asks.
    Caller,
    /// A thread.
    Thread(JoinHandle<()>),
}

struct Work {
    disk: Arc<dyn Disk>,
    store: StoreId,
    index: Arc<Index>,
    todo: Mutex<Todo>,
    /// Something is to be done, or was.
    changed: Condvar,
    /// Read by every new claim, without the lock.
    no_room: AtomicBool,
}

#[derive(Default)]
struct Todo {
    spare: Spare,
    chores: VecDeque<Chore>,
    stopped: bool,
}

impl Maintenance {
    /// One that remembers what it is asked for, and does nothing yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, store: StoreId, index: Arc<Index>) -> Self {
        let work = Work {
            disk,
            store,
            index,
            todo: Mutex::default(),
            changed: Condvar::new(),
            no_room: AtomicBool::new(false),
        };
        Self { work: Arc::new(work), by: By::Nobody }
    }

    /// Works on the thread of whoever asks from now on.
    pub(crate) fn inline(mut self) -> Self {
        self.by = By::Caller;
        self.nudge();
        self
    }

    /// Works on a thread of its own from now on.
    pub(crate) fn threaded(mut self) -> std::io::Result<Self> {
        let work = Arc::clone(&self.work);
        let thread = std::thread::Builder::new().name("semel-file-maintenance".to_owned());
        self.by = By::Thread(thread.spawn(move || work.serve())?);
        Ok(self)
    }

    /// Asks for a segment of this number; it is fetched with [`take_spare`](Self::take_spare).
    pub(crate) fn want_spare(&self, wanted: Wanted) {
        self.work.todo().spare = Spare::Wanted(wanted);
        self.nudge();
    }

    /// A segment that was found when the store was opened, and can be used as it is.
    pub(crate) fn has_spare(&self, segment: Segment, bytes: u32) {
        self.work.todo().spare = Spare::Ready(Arc::new(segment), bytes);
    }

    /// The segment that was asked for, once it is there.
    pub(crate) fn take_spare(&self) -> Result<(Arc<Segment>, u32), NoSpare> {
        // Asked before it is told: without a thread, this is what tries a full disk again.
        self.has_no_room();
        let mut todo = self.work.todo();
        loop {
            match std::mem::take(&mut todo.spare) {
                Spare::Ready(segment, bytes) => return Ok((segment, bytes)),
                Spare::NoRoom(wanted, why) => {
                    todo.spare = Spare::NoRoom(wanted, Arc::clone(&why));
                    return Err(NoSpare::NoRoom(why));
                }
                Spare::Failed(why) => {
                    todo.spare = Spare::Failed(Arc::clone(&why));
                    return Err(NoSpare::Failed(why));
                }
                wanted @ Spare::Wanted(_) => {
                    todo.spare = wanted;
                    todo = self.work.changed.wait(todo).unwrap_or_else(PoisonError::into_inner);
                }
                Spare::None => return Err(NoSpare::Failed("no segment was asked for".into())),
            }
        }
    }

    /// Whether the disk has no room for the next segment. New records are refused then: what is left of the present one
    /// is for those that are running.
    pub(crate) fn has_no_room(&self) -> bool {
        if !self.work.no_room.load(Ordering::Relaxed) {
            return false;
        }
        if matches!(self.by, By::Caller) {
            self.work.make_spare();
        }
        self.work.no_room.load(Ordering::Relaxed)
    }

    /// The disk failed behind the writer's back.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        match &self.work.todo().spare {
            Spare::Failed(why) => Some(Arc::clone(why)),
            Spare::None | Spare::Wanted(_) | Spare::Ready(..) | Spare::NoRoom(..) => None,
        }
    }

    /// Asks for the hint of a sealed segment.
    pub(crate) fn hint(&self, segment: Arc<Segment>, end: u32) {
        self.work.todo().chores.push_back(Chore::Hint(segment, end));
        self.nudge();
    }

    /// Asks for a segment's files to be removed.
    pub(crate) fn remove(&self, number: u32) {
        self.work.todo().chores.push_back(Chore::Remove(number));
        self.nudge();
    }

    fn nudge(&self) {
        match self.by {
            By::Nobody => {}
            By::Caller => while self.work.do_one() {},
            By::Thread(_) => self.work.changed.notify_all(),
        }
    }

    /// Does what is left to do and stops.
    pub(crate) fn stop(&mut self) {
        self.work.todo().stopped = true;
        self.work.changed.notify_all();
        if let By::Thread(thread) = std::mem::replace(&mut self.by, By::Nobody) {
            // A maintenance that panicked has nothing that counts: the log is the writer's.
            drop(thread.join());
        }
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Work {
    fn todo(&self) -> MutexGuard<'_, Todo> {
        self.todo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        loop {
            while self.do_one() {}
            let todo = self.todo();
            if todo.stopped && todo.chores.is_empty() {
                return;
            }
            if matches!(todo.spare, Spare::NoRoom(..)) {
                // Time is all that brings room back.
                drop(self.changed.wait_timeout(todo, TRY_AGAIN));
                if self.todo().stopped {
                    return;
                }
                self.make_spare();
            } else if todo.chores.is_empty() && !matches!(todo.spare, Spare::Wanted(_)) {
                drop(self.changed.wait(todo));
            }
        }
    }

    /// Does one thing, the most urgent first; whether there was one.
    fn do_one(&self) -> bool {
        let chore = {
            let mut todo = self.todo();
            if matches!(todo.spare, Spare::Wanted(_)) && !todo.stopped {
                None
            } else {
                match todo.chores.pop_front() {
                    Some(chore) => Some(chore),
                    None => return false,
                }
            }
        };
        match chore {
            None => self.make_spare(),
            Some(Chore::Hint(segment, end)) => {
                if let Err(error) = hints::write(&*self.disk, self.store, &segment, end, &self.index) {
                    tracing::warn!(%error, segment = segment.name(), "semel: no hint; the next start is slower");
                }
            }
            Some(Chore::Remove(number)) => {
                // Whatever stays is removed by the next opening.
                drop(self.disk.remove(&name::hint(number)));
                drop(self.disk.remove(&name::segment(number)));
            }
        }
        true
    }

    fn make_spare(&self) {
        let Some(wanted) = self.todo().spare.wanted() else { return };
        let made = Spare::made(wanted, prepare(&*self.disk, self.store, wanted.number, wanted.bytes));
        self.no_room.store(matches!(made, Spare::NoRoom(..)), Ordering::Relaxed);
        self.todo().spare = made;
        self.changed.notify_all();
    }
}
