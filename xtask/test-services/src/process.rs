//! A server's process: started, waited for, signalled, killed, and gone with its value.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::place::Place;
use crate::poll;
use crate::watchdog::Watchdog;

/// One server, running or not, and where it lives.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) place: Place,
    child: Option<Child>,
    watchdog: Watchdog,
}

impl Process {
    /// Nothing runs yet. `signal` is how the server is stopped for good: what it has is not needed any more.
    pub(crate) fn new(place: Place, signal: &str) -> Result<Self> {
        let watchdog = Watchdog::start(&place.folder, signal)?;
        Ok(Self { place, child: None, watchdog })
    }

    /// Starts the server, and waits until `is_ready`, which is handed its process id.
    pub(crate) fn start(
        &mut self,
        mut command: Command,
        is_ready: impl Fn(u32) -> Result<bool>,
    ) -> Result<()> {
        if self.child.is_some() {
            bail!("the server on port {} runs already", self.place.port);
        }
        let log = File::options().create(true).append(true).open(self.place.log())?;
        self.place.user.own(&self.place.log())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir(&self.place.folder);
        // Of a group of its own, so that a Ctrl-C is for us alone.
        let child = command.process_group(0).spawn();
        let child =
            child.with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let pid = child.id();
        self.child = Some(child);
        self.watchdog.watch(Some(pid))?;
        let ready = poll::until("a server to be ready", || {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                return Ok(Some(Err(status)));
            }
            Ok(is_ready(pid)?.then_some(Ok(())))
        });
        let why = match ready {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(status)) => format!("a server ended at once ({status})"),
            Err(error) => format!("{error:#}"),
        };
        self.kill()?;
        bail!("{why}; the end of its log:\n{}", self.place.last_words())
    }

    /// Whether the server runs, as far as we know.
    pub(crate) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().context("the server does not run")?;
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    /// Sends a signal that ends it, and waits for that.
    pub(crate) fn stop(&mut self, signal: Signal) -> Result<()> {
        self.signal(signal)?;
        poll::until("a server to stop", || {
            Ok(self.child.as_mut().context("the server does not run")?.try_wait()?)
        })?;
        self.forget()
    }

    /// Kills the server and the processes that it started, all at once: none sees another die.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let pid = Pid::from_child(child);
        // While it is stopped it starts no more of them. It may be gone already.
        let _ = kill_process(pid, Signal::STOP);
        let children = children(pid);
        for &process in children.iter().chain([&pid]) {
            let _ = kill_process(process, Signal::KILL);
        }
        child.wait()?;
        for process in children {
            poll::until("a killed process to be gone", || Ok(is_gone(process).then_some(())))?;
        }
        self.forget()
    }

    fn forget(&mut self) -> Result<()> {
        self.child = None;
        self.watchdog.watch(None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watchdog.release();
        if let Some(child) = &mut self.child {
            // The watchdog stops it; until somebody asks how it ended, it is not gone.
            drop(child.wait());
        }
    }
}

/// The processes that `parent` started.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let (_, parent_of) = state(*number)?;
        (parent_of == parent.as_raw_nonzero().get()).then_some(())
    };
    numbers.filter(|number| is_child(number).is_some()).filter_map(Pid::from_raw).collect()
}

/// What state a process is in, and who started it.
fn state(process: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything.
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

fn is_gone(process: Pid) -> bool {
    test_kill_process(process).is_err()
        || state(process.as_raw_nonzero().get()).is_none_or(|(state, _)| state == 'Z')
}
