//! Real time and processor time, for measuring.

use std::fs;
use std::time::{Duration, Instant};

/// Starts when it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch measures real time, and decides nothing")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// How long the threads of this process have run, on any core; zero where the system does not say.
///
/// Real time counts the neighbours of a busy machine too, processor time does not: where the two disagree about
/// who is faster, the machine was not idle.
pub(crate) fn processor_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ran = tasks.filter_map(|task| {
        let schedstat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    });
    ran.sum()
}
