//! Where requests wait for the writer. No timer: a writer that waits takes the first one at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::requests::WriterRequest;

/// How often the writer looks for a request before it sleeps: about a hundred microseconds, in which a lone caller is back.
const LOOKS_MAX: usize = 256;

/// Where requests wait for the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    /// Whether something waits, for a writer that looks without the lock.
    is_filled: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<WriterRequest>,
    door: Door,
    /// Whether the writer sleeps: only then it has to be woken.
    writer_sleeps: bool,
}

#[derive(Default, PartialEq)]
enum Door {
    #[default]
    Open,
    Closed,
}

impl Queue {
    /// Puts a request in; hands it back if the store is closed.
    pub(crate) fn push(&self, request: WriterRequest) -> Result<(), WriterRequest> {
        let mut waiting = self.waiting();
        if waiting.door == Door::Closed {
            return Err(request);
        }
        waiting.requests.push(request);
        self.is_filled.store(true, Ordering::Release);
        if waiting.writer_sleeps {
            waiting.writer_sleeps = false;
            drop(waiting);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes all that wait into `requests`, without waiting for any.
    pub(crate) fn take_now(&self, requests: &mut Vec<WriterRequest>) {
        self.take_all(&mut self.waiting(), requests);
    }

    /// Takes all that wait into `requests`, or waits for one. `false` when the store is closed and nothing is left.
    pub(crate) fn take(&self, requests: &mut Vec<WriterRequest>) -> bool {
        self.look_out();
        let mut waiting = self.waiting();
        loop {
            if !waiting.requests.is_empty() {
                self.take_all(&mut waiting, requests);
                return true;
            }
            if waiting.door == Door::Closed {
                return false;
            }
            waiting.writer_sleeps = true;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_all(&self, waiting: &mut Waiting, requests: &mut Vec<WriterRequest>) {
        self.is_filled.store(false, Ordering::Release);
        std::mem::swap(&mut waiting.requests, requests);
    }

    /// A lone caller comes back within microseconds of its answer: waking a thread that sleeps would take longer than
    /// its request. Other threads that could run do so meanwhile.
    fn look_out(&self) {
        for _ in 0..LOOKS_MAX {
            if self.is_filled.load(Ordering::Acquire) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Takes no more requests.
    pub(crate) fn close(&self) {
        self.waiting().door = Door::Closed;
        self.filled.notify_one();
    }

    /// Takes no more requests, and leaves those that wait without an answer.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.door = Door::Closed;
        drop(std::mem::take(&mut waiting.requests));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
