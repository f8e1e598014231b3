//! Steps in the life of a store, each in a process of its own: what another one left in memory would hide what it takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::who::Who;
use super::{disk, expiry, growth, opening};
use crate::args::FileAsk;
use crate::runtime::runtime;
use crate::window::Plan;

/// What a second process says when its keys are written.
const READY: &str = "ready";
/// On how many threads callers are.
pub(super) const THREADS: usize = 2;

/// A step in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Write all keys, and stop cleanly.
    Fill,
    /// Write all keys, say so, and go on with others until killed.
    FillAndGoOn,
    /// Open what is there.
    Open,
    /// Write all keys, and remove them when they are past their retention.
    Expire,
    /// Measure a small store and a large one.
    Grow,
    /// Let records come and go.
    Churn,
}

/// What is to be done, and how large.
pub(super) fn ask(task: Task, who: Who, folder: &Path, keys: u64) -> FileAsk {
    FileAsk { task, who, folder: folder.to_path_buf(), keys, rounds: 1, window_ms: 1 }
}

/// Has it done by a second process, and hands back what that found out.
pub(super) fn in_a_process_of_its_own<T: DeserializeOwned>(ask: &FileAsk) -> Result<T> {
    let output = command(ask)?.stdin(Stdio::null()).output().context("a second process cannot start")?;
    ensure!(output.status.success(), "{:?}: {}", ask, String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the second process speaks no JSON")
}

/// Has all keys written by a second process, and kills that while it goes on with others.
pub(super) fn fill_and_kill(who: Who, folder: &Path, keys: u64) -> Result<()> {
    let ask = ask(Task::FillAndGoOn, who, folder, keys);
    let mut child = command(&ask)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let said = child.stdout.take().context("the second process has an output")?;
    let heard = BufReader::new(said).read_line(&mut line);
    child.kill().context("the second process cannot be killed")?;
    child.wait()?;
    heard?;
    ensure!(line.trim() == READY, "the second process ended before its keys were written");
    Ok(())
}

fn command(ask: &FileAsk) -> Result<Command> {
    let task = ask.task.to_possible_value().context("every task has a name")?;
    let mut command = Command::new(std::env::current_exe().context("this program cannot be found again")?);
    command.args(["file-task", task.get_name(), &ask.who.word()]).arg(&ask.folder);
    command.args([ask.keys, ask.rounds, ask.window_ms].map(|number| number.to_string()));
    Ok(command)
}

/// The other side: does it, and prints what it found out.
pub(crate) fn run_task(ask: &FileAsk) -> Result<()> {
    match ask.task {
        Task::Fill => {
            drop(ask.who.load(&ask.folder, ask.keys, &runtime(THREADS)?, |_| ())?);
            print(&())
        }
        Task::FillAndGoOn => fill_and_go_on(ask),
        Task::Open => print(&opening::open(ask)?),
        Task::Expire => print(&expiry::expire(ask)?),
        Task::Grow => print(&growth::grow(ask)?),
        Task::Churn => print(&disk::churn(ask)?),
    }
}

fn fill_and_go_on(ask: &FileAsk) -> Result<()> {
    // Whoever was to kill this process may be gone itself.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let runtime = runtime(THREADS)?;
    let entrant = ask.who.load(&ask.folder, ask.keys, &runtime, |_| ())?;
    std::thread::spawn(|| {
        // It should be in the middle of something when it is killed.
        std::thread::sleep(Duration::from_millis(200));
        println!("{READY}");
        let _ = std::io::stdout().flush();
    });
    loop {
        entrant.window(&runtime, Plan { callers: 64, span: Duration::from_millis(500) })?;
    }
}

fn print(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}
