//! Where actions on a store that is opened here are written down, and under whose name.

use std::path::PathBuf;

use anyhow::Result;
use semel_ops::operator::Audit;

/// Where actions are written down, if no option says so.
const VARIABLE: &str = "SEMEL_AUDIT";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AuditArg {
    /// Append a line of JSON for each record to this file, before and after it is acted on; `SEMEL_AUDIT` if not given.
    /// Through a server (--store http://…), the server writes its own
    #[arg(long = "audit", id = "audit", value_name = "FILE")]
    typed: Option<PathBuf>,
}

impl AuditArg {
    /// The log, opened before anything is done.
    pub(crate) fn open(&self) -> Result<Audit> {
        let variable = || std::env::var_os(VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from);
        Ok(Audit::to(self.typed.clone().or_else(variable))?)
    }
}

/// The account that runs this command.
pub(crate) fn account() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()))
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
