//! Values that many threads write and few read: each thread has its own, on a cache line of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are. Threads beyond that share them.
const STRIPES: usize = 16;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

/// One value a stripe. A single one that all threads write would move between their cores with every write.
#[derive(Debug)]
pub(crate) struct PerThread<T>([CacheLine<T>; STRIPES]);

/// Two lines of 64 bytes, since processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl<T> PerThread<T> {
    pub(crate) fn new(mut value: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| CacheLine(value())))
    }

    /// The one that belongs to this thread.
    pub(crate) fn mine(&self) -> &T {
        let [first, ..] = &self.0;
        // A thread that is ending has no stripe left, and takes any.
        let stripe = STRIPE.try_with(|stripe| *stripe).unwrap_or(0);
        &self.0.get(stripe).unwrap_or(first).0
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}
