//! `semel keys`: to find one record, look at it, and settle it.
//!
//! - [`selector`]: which record is meant, by its key or by the beginning of its id.
//! - [`list`]: many records, a line each. [`show`]: the whole life of one.
//! - [`settle`]: release and resolve, which ask first. [`many`]: the same for all that meet the conditions of a [`filter`].
//! - `words`: a record in words.

mod filter;
mod list;
mod many;
mod selector;
mod settle;
mod show;

use anyhow::Result;
use clap::{ArgGroup, Subcommand};
pub(crate) use semel_ops::format::record as words;
pub(crate) use semel_ops::lookup::IdPrefix;

use crate::store_arg::StoreArg;
use list::ListArgs;
pub(crate) use selector::Found;
pub(crate) use settle::{REASON, release};
use settle::{ReleaseArgs, ResolveArgs};
use show::ShowArgs;
pub(crate) use show::{Shown, show};

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List records, a line each
    ///
    /// In the order of their ids, a page at a time. `left` is what is left of the lease of a running record, and of the retention
    /// of a settled one. With --json, one object a line, and nothing else.
    #[command(after_help = "Examples:\n  \
        semel keys list --state held                        what waits for a person\n  \
        semel keys list --state running --older-than 10m    what has been running for too long\n  \
        semel keys list --scope acme/eu --operation charge  one tenant's charges\n  \
        semel keys list --state held --sort age             what has waited for longest\n  \
        semel keys list --all --json | jq -r .name          every name there is")]
    List(Box<ListArgs>),
    /// Show the whole life of one record, and what may be done about it
    #[command(after_help = "Examples:\n  \
        semel keys show 3f2a9c0d                            by the beginning of its id\n  \
        semel keys show --scope acme --operation charge --name order-1042\n  \
        semel keys show 3f2a9c0d --outcome                  with what every retry gets")]
    Show(ShowArgs),
    /// Have the next claim of a running or held key run; asks first
    ///
    /// For a run that you know is dead, or with conditions instead of an ID for many (held keys, unless --state says otherwise).
    /// Releasing stops no process: a run that is still going on goes on beside the next one until it
    /// notices, and its complete is refused as lost. A done record is never touched.
    #[command(after_help = "Examples:\n  \
        semel keys release 3f2a9c0d                         shows what it means, and asks\n  \
        semel keys release 3f2a9c0d --yes --reason 'host-7 burnt down'\n  \
        semel keys release --state running --older-than 2h --dry-run    which keys would it be?\n  \
        semel keys release --state running --older-than 2h --limit 100 --yes --audit audit.jsonl")]
    Release(Box<ReleaseArgs>),
    /// Settle a held key: its effect landed, or it did not; asks first
    ///
    /// A key is held when a run may or may not have had its effect; it does not run again before an operator decides. If the effect
    /// landed, give what every retry is to get; if it did not, release it. With conditions instead of an ID, all held keys that
    /// meet them are settled in the same way: the first ten and their number are shown first.
    #[command(group(ArgGroup::new("how").required(true).args(["status", "outcome_file", "release"])))]
    #[command(after_help = "Examples:\n  \
        semel keys resolve 3f2a9c0d --status 201 --header 'Location: /charges/7' --body-file charge.json\n  \
        semel keys resolve 3f2a9c0d --outcome-file charge.json    the same for a key that no HTTP request made\n  \
        semel keys resolve 3f2a9c0d --release                     it did not: the next claim runs\n  \
        semel keys resolve --label 'POST /charges' --older-than 1h --release --dry-run    which keys would it be?\n  \
        semel keys resolve --label 'POST /charges' --older-than 1h --release --yes --audit audit.jsonl")]
    Resolve(Box<ResolveArgs>),
}

impl KeysCommand {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        match self {
            Self::List(args) => args.run(store).await,
            Self::Show(args) => args.run(store).await,
            Self::Release(args) => args.run(store).await,
            Self::Resolve(args) => args.run(store).await,
        }
    }
}
