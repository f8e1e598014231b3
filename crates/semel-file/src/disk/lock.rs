//! The lock of a folder, and the process that has it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

/// The file whose lock says that a process uses the folder. Its content, the process id, is for people.
pub(super) const LOCK: &str = "lock";

/// How long a process that was killed may take to end: the system lets go of its locks only after its memory and its last
/// write. Two seconds, in steps.
const STEP: Duration = Duration::from_millis(20);
const STEPS_MAX: u32 = 100;
/// A process that lets go of one lock lets go of the other in the same moment.
const SECOND_STEPS_MAX: u32 = 20;

/// What became of taking a lock.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Ours,
    /// Another process has it, or another store of this one; the process that signed it, if one has.
    InUse(Option<String>),
}

/// Takes the lock; waits for a process that is about to end, and for no other. Says who has it, if it stays taken.
pub(super) fn take(lock: &File) -> io::Result<Option<String>> {
    Ok(match take_waiting(lock, STEPS_MAX, || holder(lock), pause)? {
        Taken::Ours => None,
        Taken::InUse(None) => Some("another process".to_owned()),
        Taken::InUse(Some(process)) if is_at_work(&process) => Some(format!("process {process}")),
        Taken::InUse(Some(process)) => Some(format!(
            "process {process}, which has ended: a process that it started still has its files open"
        )),
    })
}

/// Takes the lock of a data file, once the other one is ours; whether it stays taken.
pub(super) fn take_second(data: &File) -> io::Result<bool> {
    Ok(take_waiting(data, SECOND_STEPS_MAX, || None, pause)? != Taken::Ours)
}

fn pause() {
    std::thread::sleep(STEP);
}

fn take_waiting(
    lock: &File,
    steps_max: u32,
    holder: impl Fn() -> Option<String>,
    mut pause: impl FnMut(),
) -> io::Result<Taken> {
    for _ in 0..steps_max {
        match lock.try_lock() {
            Ok(()) => return Ok(Taken::Ours),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        if let Some(process) = holder().filter(|process| is_at_work(process)) {
            return Ok(Taken::InUse(Some(process)));
        }
        pause();
    }
    Ok(Taken::InUse(holder()))
}

/// Writes down who has the lock.
pub(super) fn sign(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    write!(lock, "{}", std::process::id())
}

/// The process that wrote its id into the lock.
fn holder(mut lock: &File) -> Option<String> {
    let mut process = String::new();
    lock.rewind().and_then(|()| lock.read_to_string(&mut process)).ok()?;
    let process = process.trim();
    (!process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit())).then(|| process.to_owned())
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
        let (mut held, mut pauses) = (Some(lock), 0);
        let pause = || {
            pauses += 1;
            drop(held.take());
        };
        let ours = open(file.path());
        assert_eq!(take_waiting(&ours, STEPS_MAX, || holder(&ours), pause).unwrap(), Taken::Ours);
        assert_eq!(pauses, 1);
    }

    #[test]
    fn a_lock_that_is_never_let_go_is_refused_in_the_end_with_the_process_that_is_gone() {
        let (file, _lock) = taken(NO_PROCESS);
        let (ours, mut pauses) = (open(file.path()), 0);
        let found = take_waiting(&ours, STEPS_MAX, || holder(&ours), || pauses += 1).unwrap();
        assert_eq!(found, Taken::InUse(Some(NO_PROCESS.to_owned())));
        assert_eq!(pauses, STEPS_MAX);
        assert!(!is_at_work(NO_PROCESS));
    }

    #[test]
    fn a_lock_of_a_process_at_work_is_refused_at_once() {
        let process = std::process::id().to_string();
        let (file, _lock) = taken(&process);
        let ours = open(file.path());
        let found = take_waiting(&ours, STEPS_MAX, || holder(&ours), || panic!("it waited")).unwrap();
        assert_eq!(found, Taken::InUse(Some(process)));
    }

    #[test]
    fn a_zombie_and_a_process_that_was_killed_are_ending() {
        let at_work = "State:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000001\n";
        assert!(!is_ending(at_work));
        assert!(is_ending(&at_work.replace("S (sleeping)", "Z (zombie)")));
        assert!(is_ending(&at_work.replace("0000000000000001", "0000000000000100")));
    }
}
