//! Where actions on a store that is opened here are written down, and under whose name.

use std::path::PathBuf;

use anyhow::Result;
use semel_ops::operator::Audit;

use crate::args::refused;

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
    /// A server writes down what is done through it: a second log that was typed must not seem to be written.
    pub(crate) fn refuse_for_server(&self) -> Result<(), clap::Error> {
        match self.typed {
            Some(_) => Err(refused(
                "through a server, the server writes the audit log: leave --audit out, and start the server with it",
            )),
            None => Ok(()),
        }
    }

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
