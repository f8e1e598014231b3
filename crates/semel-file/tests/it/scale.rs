//! How much is tried: little on every run, much when somebody asks for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the environment variable says, or `default`.
pub(crate) fn from_env(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("the variable holds a whole number"))
}

/// Tries every number below `count`, on two threads, and gives what was wrong with each that failed. Stops after a few.
pub(crate) fn failures(count: u64, attempt: impl Fn(u64) -> Result<(), String> + Sync) -> Vec<String> {
    const ENOUGH: u64 = 5;
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut found = Vec::new();
        while failed.load(Ordering::Relaxed) < ENOUGH {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            if let Err(what) = attempt(number) {
                failed.fetch_add(1, Ordering::Relaxed);
                found.push(format!("{number}: {what}"));
            }
        }
        found
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut found = work();
        found.extend(other.join().expect("the other thread does not panic"));
        found
    })
}
