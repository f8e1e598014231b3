//! Locks that outlive a panic elsewhere.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock. Nothing here panics while it holds one half-way through a change, so what a poisoned lock
/// guards is whole; refusing it would turn one caller's panic into everybody's outage.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
