//! The scripts, and the commands that run them by their digests.

use std::sync::LazyLock;

use redis::{Cmd, Script};

use crate::names::Names;

const SWAP_SOURCE: &str = include_str!("swap.lua");
const SWEEP_SOURCE: &str = include_str!("sweep.lua");
const SPREAD_SOURCE: &str = include_str!("spread.lua");
const RIGHTS_SOURCE: &str = include_str!("rights.lua");

static SWAP: LazyLock<Script> = LazyLock::new(|| Script::new(SWAP_SOURCE));
static SWEEP: LazyLock<Script> = LazyLock::new(|| Script::new(SWEEP_SOURCE));
static SPREAD: LazyLock<Script> = LazyLock::new(|| Script::new(SPREAD_SOURCE));
static RIGHTS: LazyLock<Script> = LazyLock::new(|| Script::new(RIGHTS_SOURCE));

/// What is sent of one swap.
pub(crate) struct SwapRow {
    pub(crate) key: String,
    pub(crate) expected: Vec<u8>,
    /// How long to keep it, in microseconds; empty for ever.
    pub(crate) keep: String,
    pub(crate) draft: Vec<u8>,
}

/// The command that swaps them all; `due` is the other key that it writes, where it has to be named.
pub(crate) fn swap<'a>(
    counter: &str,
    rows: impl ExactSizeIterator<Item = &'a SwapRow> + Clone,
    due: Option<String>,
) -> Cmd {
    let bytes: usize = rows.clone().map(|row| row.draft.len().saturating_add(row.key.len())).sum();
    let arguments = rows.len().saturating_mul(4).saturating_add(5);
    let mut cmd = Cmd::with_capacity(arguments, bytes.saturating_add(rows.len().saturating_mul(32)));
    let keys = rows.len().saturating_add(1).saturating_add(usize::from(due.is_some()));
    cmd.arg("EVALSHA").arg(SWAP.get_hash()).arg(keys).arg(counter);
    rows.clone().for_each(|row| {
        cmd.arg(&row.key);
    });
    cmd.arg(due);
    rows.for_each(|row| {
        cmd.arg(&row.expected).arg(&row.keep).arg(&row.draft);
    });
    cmd
}

/// The command that removes what is past its keep, of these sets of due entries; on one server with the prefix.
pub(crate) fn sweep(sets: &[String], limit: usize, prefix: Option<&str>) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("EVALSHA").arg(SWEEP.get_hash()).arg(sets.len()).arg(sets).arg(limit).arg(prefix);
    cmd
}

/// The command that moves entries from the set of all tags to the sets of their tags.
pub(crate) fn spread(names: &Names, limit: usize) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("EVALSHA").arg(SPREAD.get_hash()).arg(1).arg(names.common_due()).arg(limit);
    cmd
}

/// The command that finds what the user may not run.
pub(crate) fn rights(names: &Names) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("EVALSHA").arg(RIGHTS.get_hash()).arg(0).arg(names.never_there());
    cmd
}

/// The commands that give a server the scripts.
pub(crate) fn load() -> [Cmd; 4] {
    [SWAP_SOURCE, SWEEP_SOURCE, SPREAD_SOURCE, RIGHTS_SOURCE].map(|source| {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(source);
        cmd
    })
}
