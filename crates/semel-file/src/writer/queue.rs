//! Where requests wait for the writer. No timer: a writer that waits takes the first one at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::requests::Request;

/// Where requests wait for the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<Request>,
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
    pub(crate) fn push(&self, request: Request) -> Result<(), Request> {
        let mut waiting = self.waiting();
        if waiting.door == Door::Closed {
            return Err(request);
        }
        waiting.requests.push(request);
        if waiting.writer_sleeps {
            waiting.writer_sleeps = false;
            drop(waiting);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes all that wait into `requests`, without waiting for any.
    pub(crate) fn take_now(&self, requests: &mut Vec<Request>) {
        std::mem::swap(&mut self.waiting().requests, requests);
    }

    /// Takes all that wait into `requests`, or waits for one. `false` when the store is closed and nothing is left.
    pub(crate) fn take(&self, requests: &mut Vec<Request>) -> bool {
        let mut waiting = self.waiting();
        loop {
            if !waiting.requests.is_empty() {
                std::mem::swap(&mut waiting.requests, requests);
                return true;
            }
            if waiting.door == Door::Closed {
                return false;
            }
            waiting.writer_sleeps = true;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.waiting().door = Door::Closed;
        self.filled.notify_one();
    }

    /// Lets nobody in any more, and leaves those who wait without an answer.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.door = Door::Closed;
        drop(std::mem::take(&mut waiting.requests));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
