//! Real time, processor time of this process and of others, and how busy the machine is.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::report::float;

/// `/proc` counts processor time in hundredths of a second, whatever the kernel's own clock.
const TICK: Duration = Duration::from_millis(10);

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

/// How long the threads of this process have run, on any core; zero where the system does not say. Unlike real time, it
/// leaves out other processes: where the two disagree about who is faster, the machine was not idle.
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
struct MachineTime {
    busy: u64,
    all: u64,
}

impl MachineTime {
    fn now() -> Self {
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

    fn busy_share_since(self, earlier: Self) -> f64 {
        float(self.busy - earlier.busy) / float((self.all - earlier.all).max(1))
    }
}

/// What other processes use of the machine while this one works.
pub(crate) struct OtherProcesses {
    watch: Stopwatch,
    machine: MachineTime,
    own: Duration,
}

impl OtherProcesses {
    pub(crate) fn watch() -> Self {
        Self { watch: Stopwatch::start(), machine: MachineTime::now(), own: processor_time() }
    }

    /// How much of the machine they use, from 0 to 1, while this one waits for a second.
    pub(crate) fn share_while_idle() -> f64 {
        let others = Self::watch();
        std::thread::sleep(Duration::from_secs(1));
        others.share()
    }

    /// How much of the machine they used since then, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let own = processor_time().saturating_sub(self.own).as_secs_f64();
        let own_share = own / (self.watch.elapsed().as_secs_f64() * float(cores));
        (MachineTime::now().busy_share_since(self.machine) - own_share).clamp(0.0, 1.0)
    }
}

/// Processor time that a process and its descendants had taken at some time.
pub(crate) struct Cpu {
    pid: u32,
    taken: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    ticks: u32,
}

impl Cpu {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        Ok(Self { pid, taken: taken(pid)? })
    }

    pub(crate) fn until_now(&self) -> Result<Duration> {
        Ok(taken(self.pid)?.saturating_sub(self.taken))
    }
}

/// User and system time, also of threads that are gone.
fn taken(pid: u32) -> Result<Duration> {
    let names = fs::read_dir("/proc").context("processor time is read on Linux only")?.flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may be gone between the two looks.
    let stats: Vec<Stat> =
        pids.filter_map(|pid| Stat::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect();
    Ok(TICK * family(&stats, pid).map(|stat| stat.ticks).sum())
}

fn family(stats: &[Stat], pid: u32) -> impl Iterator<Item = &Stat> {
    let (mut members, mut grown) = (vec![pid], 0);
    while grown < members.len() {
        grown = members.len();
        let children =
            stats.iter().filter(|stat| members.contains(&stat.parent) && !members.contains(&stat.pid));
        members.extend(children.map(|stat| stat.pid).collect::<Vec<_>>());
    }
    stats.iter().filter(move |stat| members.contains(&stat.pid))
}

impl Stat {
    fn read(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(' ')?;
        // The name in brackets may hold anything.
        let words: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let at = |place: usize| words.get(place)?.parse().ok();
        Some(Self { pid: pid.parse().ok()?, parent: at(1)?, ticks: at(11)? + at(12)? })
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

    #[test]
    fn a_line_is_read_whatever_the_name_of_its_process() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 50 25 6 7 20 0 1 0 99";
        assert_eq!(Stat::read(line), Some(Stat { pid: 42, parent: 7, ticks: 75 }));
        assert_eq!(Stat::read("42 (a"), None);
    }

    #[test]
    fn a_family_is_a_process_and_its_children_and_theirs() {
        let stat = |pid, parent| Stat { pid, parent, ticks: 1 };
        let stats = [stat(4, 3), stat(1, 0), stat(2, 1), stat(3, 2), stat(5, 1)];
        let pids: Vec<_> = family(&stats, 2).map(|stat| stat.pid).collect();
        assert_eq!(pids, [4, 2, 3]);
    }

    #[test]
    fn a_process_that_works_takes_processor_time() {
        let cpu = Cpu::of(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while cpu.until_now().unwrap() < TICK * 3 {
            sum = (0..100_000).fold(sum, u64::wrapping_add);
        }
        assert!(cpu.until_now().unwrap() >= TICK * 3, "{sum}");
    }
}
