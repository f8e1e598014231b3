//! The `semel` that people run: the release binary, built now.

use std::path::PathBuf;

use anyhow::Result;
use xtask::run::{built, cargo};

pub(crate) fn binary() -> Result<PathBuf> {
    cargo(["build", "--release", "--package", "semel-cli"]).show()?;
    built("release", "semel")
}
