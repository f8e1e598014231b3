//! Prepares the next segment, writes hints and removes what is no longer needed, so that the writer never waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use semel::store::SwapReply;
use semel::{Error, ErrorKind};

use super::hints;
use super::segment::{Segment, prepare_in_pieces};
use super::spare::{NoSpare, Spare, WantedSegment};
use crate::disk::Disk;
use crate::format::identity::StoreId;
use crate::format::name;
use crate::index::Index;

/// How long to wait before a segment that could not be made is tried again; twice as long after each further try.
const TRY_AGAIN_FIRST: Duration = Duration::from_millis(200);
const TRY_AGAIN_MOST: Duration = Duration::from_secs(5);
/// How long the disk is left to the log between two pieces of a segment: about as long as a piece takes.
const PIECE_PAUSE: Duration = Duration::from_millis(4);

/// What can wait.
enum Chore {
    /// A hint for a segment whose frames end here.
    Hint(Arc<Segment>, u32),
    /// The files of a segment that is no longer needed.
    Remove(u32),
}

/// Does what can wait, on a thread of its own or on those of the callers.
pub(crate) struct Maintenance {
    work: Arc<Work>,
    by: By,
}

/// Which thread does it.
enum By {
    /// None yet, or none any more.
    None,
    /// That of the caller.
    Caller,
    /// One of its own.
    Thread(JoinHandle<()>),
}

/// How fast a segment is made.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// At once: a caller waits for it.
    AtOnce,
    /// With pauses, so that the syncs of the log do not queue behind it.
    BesideTheLog,
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
    is_stopped: bool,
    /// The writer waits for the segment.
    is_awaited: bool,
    /// Why nothing will ever be done again.
    failure: Option<Arc<str>>,
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
        Self { work: Arc::new(work), by: By::None }
    }

    /// Works on the threads of the callers from now on.
    pub(crate) fn inline(mut self) -> Self {
        self.by = By::Caller;
        self.nudge();
        self
    }

    /// Works on a thread of its own from now on.
    pub(crate) fn threaded(mut self) -> io::Result<Self> {
        let work = Arc::clone(&self.work);
        let thread = std::thread::Builder::new().name("semel-file-maintenance".to_owned());
        self.by = By::Thread(thread.spawn(move || work.serve())?);
        Ok(self)
    }

    /// Asks for a segment of this number; it is fetched with [`take_spare`](Self::take_spare).
    pub(crate) fn want_spare(&self, wanted: WantedSegment) {
        self.work.todo().spare = Spare::Wanted(wanted);
        self.nudge();
    }

    /// A segment that was found when the store was opened, and can be used as it is.
    pub(crate) fn has_spare(&self, segment: Segment, bytes: u32) {
        self.work.todo().spare = Spare::Ready(Arc::new(segment), bytes);
    }

    /// The segment that was asked for, once it is there.
    pub(crate) fn take_spare(&self) -> Result<(Arc<Segment>, u32), NoSpare> {
        self.try_again_inline();
        let taken = self.wait_for_spare();
        self.work.todo().is_awaited = false;
        taken
    }

    fn wait_for_spare(&self) -> Result<(Arc<Segment>, u32), NoSpare> {
        let mut todo = self.work.todo();
        loop {
            match std::mem::take(&mut todo.spare) {
                Spare::Ready(segment, bytes) => return Ok((segment, bytes)),
                Spare::Delayed(wanted, why) => {
                    todo.spare = Spare::Delayed(wanted, why.clone());
                    return Err(why);
                }
                wanted @ Spare::Wanted(_) => {
                    todo.spare = wanted;
                    if let Some(why) = &todo.failure {
                        return Err(NoSpare::Failed(Arc::clone(why)));
                    }
                    todo.is_awaited = true;
                    self.work.changed.notify_all();
                    todo = self.work.changed.wait(todo).unwrap_or_else(PoisonError::into_inner);
                }
                Spare::None => return Err(NoSpare::Failed("no segment was asked for".into())),
            }
        }
    }

    /// Whether the next segment cannot be made now. New records are refused then: what is left of the present one is for
    /// those that are running.
    pub(crate) fn has_no_room(&self) -> bool {
        if !self.work.no_room.load(Ordering::Relaxed) {
            return false;
        }
        self.try_again_inline();
        self.work.no_room.load(Ordering::Relaxed)
    }

    /// The answer to a new record while the next segment cannot be made. Only a disk without room is full: to make room
    /// would help against nothing else.
    pub(crate) fn refusal(&self) -> SwapReply {
        match &self.work.todo().spare {
            Spare::Delayed(_, NoSpare::Refused(why)) => SwapReply::Refused(Error::new(
                ErrorKind::Unavailable,
                format!("no new record is taken, because {why}; nothing happened: it is tried again"),
            )),
            Spare::Delayed(..) | Spare::None | Spare::Wanted(_) | Spare::Ready(..) => SwapReply::Full,
        }
    }

    /// Why nothing will ever be prepared again: the store must stop.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.work.todo().failure.clone()
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
            By::None => {}
            By::Caller => while self.work.do_one(Pace::AtOnce) {},
            By::Thread(_) => self.work.changed.notify_all(),
        }
    }

    /// Without a thread, a caller that needs the segment is what tries again.
    fn try_again_inline(&self) {
        if matches!(self.by, By::Caller) {
            self.work.make_spare(Pace::AtOnce);
        }
    }

    /// Does what is left to do and stops.
    pub(crate) fn stop(&mut self) {
        self.work.todo().is_stopped = true;
        self.work.changed.notify_all();
        if let By::Thread(thread) = std::mem::replace(&mut self.by, By::None) {
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

    /// The life of the thread.
    fn serve(&self) {
        let _at_the_end = AtTheEnd(self);
        let mut pause = TRY_AGAIN_FIRST;
        loop {
            while self.do_one(Pace::BesideTheLog) {}
            let todo = self.todo();
            if todo.is_stopped {
                if todo.chores.is_empty() {
                    return;
                }
            } else if matches!(todo.spare, Spare::Delayed(..)) {
                // Time may mend it, and so may a segment that is removed meanwhile.
                drop(self.changed.wait_timeout(todo, pause));
                pause = pause.saturating_mul(2).min(TRY_AGAIN_MOST);
                while self.do_one(Pace::BesideTheLog) {}
                self.make_spare(Pace::BesideTheLog);
            } else if todo.chores.is_empty() && !matches!(todo.spare, Spare::Wanted(_)) {
                pause = TRY_AGAIN_FIRST;
                drop(self.changed.wait(todo));
            }
        }
    }

    /// Does one thing, the most urgent first; whether there was one.
    fn do_one(&self, pace: Pace) -> bool {
        let chore = {
            let mut todo = self.todo();
            if matches!(todo.spare, Spare::Wanted(_)) && !todo.is_stopped {
                None
            } else {
                match todo.chores.pop_front() {
                    Some(chore) => Some(chore),
                    None => return false,
                }
            }
        };
        match chore {
            None => self.make_spare(pace),
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

    /// Makes the segment that is wanted, if one is.
    fn make_spare(&self, pace: Pace) {
        let todo = self.todo();
        let Some(wanted) = todo.spare.wanted().filter(|_| !todo.is_stopped) else { return };
        drop(todo);
        let mut between = || self.rest(pace);
        let made = prepare_in_pieces(&*self.disk, self.store, wanted.number, wanted.bytes, &mut between);
        let made = Spare::made(wanted, made);
        self.notice(&made);
        self.todo().spare = made;
        self.changed.notify_all();
    }

    /// Leaves the disk to the log for a moment, if the writer does not wait for just this segment.
    fn rest(&self, pace: Pace) -> io::Result<()> {
        let todo = self.todo();
        if todo.is_stopped {
            return Err(stopped());
        }
        if pace == Pace::BesideTheLog && !todo.is_awaited {
            drop(self.changed.wait_timeout(todo, PIECE_PAUSE));
        }
        Ok(())
    }

    /// Lets new claims be refused, or taken again, and says why: once, however often it is tried.
    fn notice(&self, made: &Spare) {
        let had_no_room = self.no_room.load(Ordering::Relaxed);
        match made {
            Spare::Delayed(_, NoSpare::NoRoom(why) | NoSpare::Refused(why) | NoSpare::Failed(why)) => {
                if !had_no_room && !self.todo().is_stopped {
                    tracing::error!(
                        why = &**why,
                        "semel: new records are refused until a segment can be made"
                    );
                }
                self.no_room.store(true, Ordering::Relaxed);
            }
            Spare::None | Spare::Wanted(_) | Spare::Ready(..) => {
                if had_no_room {
                    tracing::info!("semel: new records are taken again");
                }
                self.no_room.store(false, Ordering::Relaxed);
            }
        }
    }
}

/// The store is closed: a segment that is half made is of no use.
#[cold]
fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the store was closed")
}

/// However the thread ends, the writer must not wait for it in vain.
struct AtTheEnd<'a>(&'a Work);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.todo().failure = Some("the maintenance thread panicked".into());
            self.0.changed.notify_all();
        }
    }
}
