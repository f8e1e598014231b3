//! The lock of a folder, and the process that has it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

/// The file whose lock says that a process uses the folder. Its content, the process id, is for people.
pub(super) const LOCK: &str = "lock";

/// How long a process that was killed may take to end: the system lets go of its locks only after its memory and its last
/// write. As many steps of this length are waited.
const STEP: Duration = Duration::from_millis(20);
const STEPS_MAX: u32 = 100;

/// What became of taking a lock.
#[derive(Debug)]
pub(super) enum Taken {
    Ours(File),
    /// Another process has it, or another store of this one.
    InUse(String),
}

/// Takes the lock; waits for a process that is about to end, and for no other.
pub(super) fn take(lock: File) -> io::Result<Taken> {
    take_waiting(lock, &mut || std::thread::sleep(STEP))
}

fn take_waiting(mut lock: File, wait: &mut dyn FnMut()) -> io::Result<Taken> {
    for _ in 0..STEPS_MAX {
        match lock.try_lock() {
            Ok(()) => return Ok(Taken::Ours(lock)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = holder(&mut lock);
        if holder.as_deref().is_some_and(is_at_work) {
            return Ok(Taken::InUse(named(holder.as_deref())));
        }
        wait();
    }
    let holder = holder(&mut lock);
    let ended = "which has ended: a process that it started still has its files open";
    Ok(Taken::InUse(match holder {
        Some(process) => format!("process {process}, {ended}"),
        None => named(None),
    }))
}

/// Writes down who has the lock.
pub(super) fn sign(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    write!(lock, "{}", std::process::id())
}

/// The process that wrote its id into the lock.
fn holder(lock: &mut File) -> Option<String> {
    let mut process = String::new();
    lock.rewind().and_then(|()| lock.read_to_string(&mut process)).ok()?;
    let process = process.trim();
    (!process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit())).then(|| process.to_owned())
}

fn named(holder: Option<&str>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}

/// Whether a process runs, and was not killed: one that was has its locks until it is gone.
fn is_at_work(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{process}/status")).is_ok_and(|status| !is_ending(&status))
}

/// Whether a process has ended but for its entry, or has a `SIGKILL` that it cannot refuse.
fn is_ending(status: &str) -> bool {
    /// Signal 9, counted from bit 0 as signal 1.
    const SIGKILL: u64 = 1 << 8;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let is_killed = |name: &str| {
        field(name)
            .and_then(|mask| u64::from_str_radix(mask, 16).ok())
            .is_some_and(|mask| mask & SIGKILL != 0)
    };
    field("State:").is_some_and(|state| state.starts_with(['Z', 'X']))
        || is_killed("SigPnd:")
        || is_killed("ShdPnd:")
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::Path;

    use super::*;

    /// More than any system hands out.
    const NO_PROCESS: &str = "4294967295";

    fn open(path: &Path) -> File {
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).unwrap()
    }

    /// A lock that is taken, signed by this process id.
    fn taken(process: &str) -> (tempfile::NamedTempFile, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), process).unwrap();
        let lock = open(file.path());
        lock.try_lock().unwrap();
        (file, lock)
    }

    #[test]
    fn a_lock_of_a_process_that_is_gone_is_waited_for_and_then_taken() {
        let (file, lock) = taken(NO_PROCESS);
        let (mut held, mut waits) = (Some(lock), 0);
        let mut wait = || {
            waits += 1;
            drop(held.take());
        };
        let taken = take_waiting(open(file.path()), &mut wait).unwrap();
        assert!(matches!(taken, Taken::Ours(_)), "{taken:?}");
        assert_eq!(waits, 1);
    }

    #[test]
    fn a_lock_that_is_never_let_go_is_refused_in_the_end_and_says_that_its_process_is_gone() {
        let (file, _lock) = taken(NO_PROCESS);
        let mut waits = 0;
        let Taken::InUse(by) = take_waiting(open(file.path()), &mut || waits += 1).unwrap() else {
            panic!("it was taken")
        };
        assert!(by.contains(NO_PROCESS) && by.contains("has ended"), "{by}");
        assert_eq!(waits, STEPS_MAX);
    }

    #[test]
    fn a_lock_of_a_process_at_work_is_refused_at_once() {
        let (file, _lock) = taken(&std::process::id().to_string());
        let taken = take_waiting(open(file.path()), &mut || panic!("it waited")).unwrap();
        assert!(matches!(taken, Taken::InUse(by) if by.contains(&std::process::id().to_string())));
    }

    #[test]
    fn a_zombie_and_a_process_that_was_killed_are_ending() {
        let at_work = "State:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000001\n";
        assert!(!is_ending(at_work));
        assert!(is_ending(&at_work.replace("S (sleeping)", "Z (zombie)")));
        assert!(is_ending(&at_work.replace("0000000000000001", "0000000000000100")));
    }
}
