//! The two scripts, and the digests by which a server that has them is told to run them.

use std::sync::LazyLock;

use redis::Cmd;

use crate::names::{Names, Tag};

static SWAP: LazyLock<redis::Script> = LazyLock::new(|| redis::Script::new(include_str!("swap.lua")));
static SWEEP: LazyLock<redis::Script> = LazyLock::new(|| redis::Script::new(include_str!("sweep.lua")));

/// What is sent of one swap.
pub(crate) struct SwapRow {
    pub(crate) key: String,
    pub(crate) expected: Vec<u8>,
    /// In microseconds; empty for ever.
    pub(crate) keep: String,
    pub(crate) draft: Vec<u8>,
}

/// The command that swaps, all in one go; `beside` are the other keys that it writes, where they have to be named.
pub(crate) fn swap<'a>(rows: impl ExactSizeIterator<Item = &'a SwapRow> + Clone, beside: &[String]) -> Cmd {
    let bytes: usize = rows.clone().map(|row| row.draft.len().saturating_add(row.key.len())).sum();
    let arguments = rows.len().saturating_mul(4).saturating_add(5);
    let mut cmd = Cmd::with_capacity(arguments, bytes.saturating_add(rows.len().saturating_mul(24)));
    cmd.arg("EVALSHA").arg(SWAP.get_hash()).arg(rows.len().saturating_add(beside.len()));
    rows.clone().for_each(|row| {
        cmd.arg(&row.key);
    });
    cmd.arg(beside);
    rows.for_each(|row| {
        cmd.arg(&row.expected).arg(&row.keep).arg(&row.draft);
    });
    cmd
}

/// The command that removes what is past its keep, of these tags.
pub(crate) fn sweep(names: &Names, tags: &[Tag], limit: usize) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("EVALSHA").arg(SWEEP.get_hash()).arg(tags.len());
    for tag in tags {
        cmd.arg(names.due(*tag));
    }
    cmd.arg(limit);
    cmd
}

/// The commands that give a server the scripts.
pub(crate) fn load() -> [Cmd; 2] {
    [include_str!("swap.lua"), include_str!("sweep.lua")].map(|source| {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(source);
        cmd
    })
}
