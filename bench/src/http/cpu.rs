//! Processor time of a process and of all that it started.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The system counts in hundredths of a second wherever `/proc` is, whatever the kernel's own clock.
const TICK: Duration = Duration::from_millis(10);

/// What a process had taken at some time.
pub(crate) struct Cpu {
    pid: u32,
    taken: Duration,
}

/// One line of the list of all processes.
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

    /// What it took since then.
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

/// A process, those it started, and those they started.
fn family(stats: &[Stat], pid: u32) -> impl Iterator<Item = &Stat> {
    let mut members = vec![pid];
    let mut grown = 0;
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
