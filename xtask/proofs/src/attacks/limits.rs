//! How many files this process, and the proxy that it starts, may have open.

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process needs beside its connections.
const BESIDE: u64 = 500;

/// Makes room for so many connections; a child that is started later has the same room.
pub(super) fn raise(connections: usize) -> Result<()> {
    let wanted = connections as u64 + BESIDE;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = now.maximum.map(|maximum| maximum.max(wanted));
    // Only some may raise the upper limit; the lower one up to it, everybody.
    let higher = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    let most = now.maximum.unwrap_or(wanted);
    let raised = higher.is_ok() || setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..now }).is_ok();
    let has = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ensure!(
        raised && has >= wanted,
        "{wanted} open files are needed and {has} allowed: run `ulimit -n {wanted}` before"
    );
    Ok(())
}
