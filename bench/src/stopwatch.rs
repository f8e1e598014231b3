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

/// Busy and all time of the machine's cores since it started, in clock ticks; zero where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineTime {
    busy: u64,
    all: u64,
}

impl MachineTime {
    pub(crate) fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(stat: &str) -> Self {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // User, nice, system, idle, waiting for the disk, interrupts (two), stolen; guests are in user already.
        let all = ticks.iter().take(8).sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Self { busy: all - idle, all }
    }

    /// How much of the machine was busy since then, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share is read to two digits")]
    pub(crate) fn busy_share_since(self, earlier: Self) -> f64 {
        (self.busy - earlier.busy) as f64 / (self.all - earlier.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "quarters are exact")]
    fn waiting_for_the_disk_is_not_busy() {
        let before = MachineTime::read("cpu  10 0 10 100 20 0 0 0 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1");
        let after = MachineTime::read("cpu  20 0 20 140 40 0 0 0 9 0");
        assert_eq!(after.busy_share_since(before), 0.25);
    }
}
