//! `fuzz-api`: requests made from the OpenAPI document, and every answer held against it.

use std::path::PathBuf;

use anyhow::Result;
use xtask::run::{passed, started};

use super::run::fuzz;
use crate::progress::Progress;
use crate::release;

/// Send requests to the claim server that its own OpenAPI document describes, good and bad ones.
///
/// No answer may be a 5xx, have a status that is not documented, or a body that does not fit its schema; the server must live on. A
/// few hundred run with every change; this is for many. A seed makes the same requests again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many requests.
    #[arg(default_value_t = 5_000)]
    count: usize,
    /// What chance starts from; told at the start.
    #[arg(long)]
    seed: Option<u64>,
    /// Ask this binary's server, instead of that of the release one that is built first.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Sends them.
pub fn run(args: &Args) -> Result<()> {
    let binary = args.binary.clone().map_or_else(release::binary, Ok)?;
    let seed = args.seed.unwrap_or_else(rand::random);
    started(&format!("fuzz-api: {} requests, --seed {seed}", args.count));
    let bar = Progress::new("fuzz-api", args.count as u64);
    let done = fuzz(&binary, args.count, seed, &|| bar.step());
    drop(bar);
    passed(&done?.to_string());
    Ok(())
}
