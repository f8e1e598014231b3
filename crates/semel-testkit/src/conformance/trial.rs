//! A store on trial: the few moves that every promise is tested with.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Write;
use semel::machine::amend::count_duplicates;
use semel::record::{Duplicates, Keep, Record, Version};
use semel::store::{Store, Swap, SwapReply};
use semel::{Key, RecordId};
use tokio::runtime::Handle;

use crate::sample;

/// A keep that no test outlives.
pub(super) const LONG: Keep = Keep::For(sample::LONG);
/// A keep that a test can wait out, and still do something within.
pub(super) const SHORT: Duration = Duration::from_millis(20);
/// How long anything may take before it is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A store on trial.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) store: &'a dyn Store,
}

impl<'a> Trial<'a> {
    pub(super) fn of(store: &'a dyn Store) -> Self {
        Self { store }
    }

    /// One swap, whatever becomes of it.
    pub(super) async fn swap(self, swap: Swap) -> Result<SwapReply, Broken> {
        let mut replies = self.store.swap([swap].into()).await?.value;
        match (replies.pop(), replies.len()) {
            (Some(reply), 0) => Ok(reply),
            (reply, more) => Err(Broken::new("one answer to one swap", format!("{reply:?} and {more} more"))),
        }
    }

    /// One swap that must win.
    pub(super) async fn write(self, swap: Swap) -> Result<Record, Broken> {
        match self.swap(swap).await? {
            SwapReply::Swapped(record) => Ok(Arc::unwrap_or_clone(record)),
            reply @ (SwapReply::Stale(_)
            | SwapReply::Full
            | SwapReply::Damaged(_)
            | SwapReply::Refused(_)) => {
                Err(Broken::new("a swap at the expected version wins", format!("{reply:?}")))
            }
        }
    }

    /// A new record of this key, running.
    pub(super) async fn put(self, key: &Key, keep: Keep) -> Result<Record, Broken> {
        self.write(first(key, keep)?).await
    }

    /// A new record of a key like no other, running.
    pub(super) async fn put_new(self, operation: &str, keep: Keep) -> Result<Record, Broken> {
        self.put(&sample::key(operation)?, keep).await
    }

    pub(super) async fn load(self, id: RecordId) -> Result<Option<Record>, Broken> {
        let mut found = self.store.load(vec![id]).await?.records()?;
        match (found.pop(), found.len()) {
            (Some(record), 0) => Ok(record),
            (record, more) => Err(Broken::new("one answer to one id", format!("{record:?} and {more} more"))),
        }
    }

    pub(super) async fn now(self) -> Result<Timestamp, Broken> {
        Ok(self.store.load(Vec::new()).await?.now)
    }

    /// Waits until the store's own clock is past `moment`.
    pub(super) async fn wait_past(self, moment: Timestamp) -> Result<(), Broken> {
        let until = tokio::time::Instant::now() + PATIENCE;
        while self.now().await? <= moment {
            if tokio::time::Instant::now() > until {
                return Err(Broken::new("the store's clock moves", format!("it never passed {moment}")));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Waits until a record that was kept for `span` may be gone, then sweeps until nothing is left to sweep.
    pub(super) async fn outlive(self, record: &Record, span: Duration) -> Result<usize, Broken> {
        self.wait_past(record.changed_at.plus(span)).await?;
        self.sweep_all(64).await
    }

    /// Sweeps until nothing is left to sweep, and says how many records went.
    pub(super) async fn sweep_all(self, limit: usize) -> Result<usize, Broken> {
        let mut removed: usize = 0;
        // Others may share the store, so the bound is far beyond what one test leaves behind.
        for _ in 0..100_000 {
            let swept = self.store.sweep(limit).await?.value;
            removed += swept.removed;
            if !swept.more_left {
                return Ok(removed);
            }
        }
        Err(Broken::new("sweeping comes to an end", format!("more was left after {removed} records")))
    }
}

/// The swap that makes the first record of a key.
pub(super) fn first(key: &Key, keep: Keep) -> Result<Swap, Broken> {
    let write = sample::running(&sample::ask(key))?;
    Ok(Swap { expected: None, next: write.next, keep })
}

/// The swap that carries a write to the record at `expected`.
pub(super) fn at(expected: Option<Version>, write: Write) -> Swap {
    Swap { expected, next: write.next, keep: write.keep }
}

/// The swap that counts one more duplicate on the record: a write that decides nothing.
pub(super) fn rewrite(record: &Record, keep: Keep) -> Result<Swap, Broken> {
    let seen = Duplicates { count: 1, last_seen_at: Some(record.changed_at) };
    let write = sample::written(count_duplicates(Some(record), seen, record.changed_at).write)?;
    Ok(Swap { expected: Some(record.version), next: write.next, keep })
}

/// Runs the futures at the same time, each on a thread of its own, and starts them together. What one caller's
/// task would interleave, threads really do at once.
pub(super) fn at_once<T: Send>(futures: Vec<impl Future<Output = T> + Send>) -> Result<Vec<T>, Broken> {
    let runtime = Handle::current();
    let start = Barrier::new(futures.len());
    let run = |future| {
        start.wait();
        runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await })
    };
    let ended: Vec<_> = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = futures.into_iter().map(|future| scope.spawn(|| run(future))).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        })
    });
    let stuck = |what: &str| Broken::new("callers at the same time are all answered", what);
    ended
        .into_iter()
        .map(|thread| match thread {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(stuck("one was still waiting after ten seconds")),
            Err(_) => Err(stuck("one panicked")),
        })
        .collect()
}

/// What a store promised, and what was seen instead.
pub struct Broken {
    promised: &'static str,
    seen: String,
}

impl Broken {
    /// A promise, and what was seen instead.
    pub fn new(promised: &'static str, seen: impl Into<String>) -> Self {
        Self { promised, seen: seen.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promised: {}; seen: {}", self.promised, self.seen)
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Broken {}

impl From<semel::Error> for Broken {
    fn from(error: semel::Error) -> Self {
        Self::new("a store that can be reached answers", format!("{error:?}"))
    }
}

/// Ends a promise as broken unless the condition holds: what was promised, then what was seen.
macro_rules! promised {
    ($holds:expr, $promised:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Broken::new($promised, format!($($seen)+)));
        }
    };
}
pub(super) use promised;

/// The fields that differ, each with what was seen and what was expected.
pub(super) fn difference(seen: &Record, expected: &Record) -> String {
    let mut fields = Vec::new();
    macro_rules! compare {
        ($($field:ident)*) => {
            $(if seen.$field != expected.$field {
                let name = stringify!($field);
                fields.push(format!("{name} is {:?} instead of {:?}", seen.$field, expected.$field));
            })*
        };
    }
    compare!(key fingerprint label state attempt attempts_forgiven past_attempts lapse retention);
    compare!(first_seen_at changed_at first_event mismatches duplicates version);
    fields.join(", ")
}
