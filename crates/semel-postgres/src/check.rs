//! What the promise needs of the server's settings, and what was found.

use std::time::Duration;

use semel::store::{DurabilityDemand, Finding, Verdict};
use semel::{Error, ErrorKind, Result};

use crate::config::{Config, Durability, Role};
use crate::wire::Wire;

/// The settings as the session sees them; null where they cannot be read.
const SETTINGS: &str = "SELECT current_setting('fsync', true), current_setting('full_page_writes', true), \
     current_setting('synchronous_commit', true), current_setting('synchronous_standby_names', true), \
     CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END";

/// What a server was set to when it was asked.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    fsync: Option<String>,
    full_page_writes: Option<String>,
    synchronous_commit: Option<String>,
    /// `None` if no commit waits for a standby.
    standbys: Option<String>,
    role: Option<String>,
}

impl ServerSettings {
    pub(crate) async fn read(wire: &Wire) -> Result<Self> {
        let mut row = wire.read(SETTINGS).await?.into_iter().next().unwrap_or_default().into_iter();
        let mut next = || row.next().flatten();
        Ok(Self {
            fsync: next(),
            full_page_writes: next(),
            synchronous_commit: next(),
            standbys: next().filter(|names| !names.trim().is_empty()),
            role: next(),
        })
    }

    /// Whether a commit waits until a standby has it.
    pub(crate) fn waits_for_standby(&self) -> bool {
        self.standbys.is_some() && self.synchronous_commit.as_deref().is_some_and(waits)
    }

    /// What was found, setting by setting.
    pub(crate) fn findings(&self, config: &Config) -> Vec<Finding> {
        let is_on = |found: &str| found == "on";
        // Without a synchronous standby, all but `off` wait for this server's disk, which is all there is to wait for.
        let commits = |found: &str| if self.standbys.is_some() { waits(found) } else { found != "off" };
        let commits_wanted = if self.standbys.is_some() {
            "on, remote_apply or remote_write"
        } else {
            "on (anything but off)"
        };
        let mut findings = vec![
            finding("fsync", self.fsync.as_deref(), "on", is_on),
            finding("full_page_writes", self.full_page_writes.as_deref(), "on", is_on),
            finding("synchronous_commit", self.synchronous_commit.as_deref(), commits_wanted, commits),
        ];
        if config.role == Role::Primary {
            findings.push(finding("role", self.role.as_deref(), "primary", |found| found == "primary"));
        }
        if config.durability == Durability::SynchronousStandby {
            let found = Some(self.standbys.as_deref().unwrap_or("empty"));
            let wanted = "the name of a standby, because the URL says durability=synchronous-standby";
            findings.push(finding("synchronous_standby_names", found, wanted, |found| found != "empty"));
        }
        findings
    }

    /// What acknowledgements survive with these settings, in words for people.
    pub(crate) fn survives(&self, config: &Config) -> String {
        let is_broken = |finding: &Finding| finding.verdict == Verdict::Broken;
        if let Some(Finding { setting, found, .. }) = self.findings(config).into_iter().find(is_broken) {
            let found = found.as_deref().unwrap_or("not readable");
            return format!("what the server's settings let survive: {setting} is {found}");
        }
        let server = "kill -9, a crash of the server or of its machine, and loss of power";
        if self.waits_for_standby() {
            format!("{server}, and a failover to its synchronous standby")
        } else {
            format!("{server}; not a failover, because commits wait for no standby")
        }
    }

    /// Refuses settings that do not keep the promise, or logs them if that was asked for.
    pub(crate) fn demand(&self, config: &Config) -> Result<()> {
        for Finding { setting, found, wanted, verdict } in self.findings(config) {
            let found = found.as_deref().unwrap_or("not readable");
            match verdict {
                Verdict::Kept => {}
                Verdict::Unreadable => {
                    tracing::warn!(%setting, %wanted, "semel: a setting that the promise needs cannot be read");
                }
                Verdict::Broken if config.durability == Durability::AsConfigured => {
                    tracing::warn!(%setting, %found, %wanted, "semel: what is acknowledged may be lost");
                }
                Verdict::Broken => {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        format!(
                            "{setting} is {found} on this server, and what semel acknowledged could be lost; set it to \
                             {wanted}, or accept the losses with `durability=as-configured` in the URL"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether new claims are refused while a setting breaks the promise.
pub(crate) fn durability_demand(config: &Config) -> DurabilityDemand {
    match config.durability {
        Durability::Promised | Durability::SynchronousStandby => DurabilityDemand::Demanded,
        Durability::AsConfigured => DurabilityDemand::AsConfigured,
    }
}

/// Refuses a server whose synchronous standby has not answered for so long: each statement that waits for it keeps a
/// connection of the server, and new ones would use them up.
pub(crate) async fn demand_standby_answers(wire: &Wire, within: Duration) -> Result<()> {
    let text = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep' \
         AND query_start < statement_timestamp() - interval '{} milliseconds'",
        within.as_millis()
    );
    let waiting = wire.read(&text).await?.into_iter().flatten().flatten().next();
    match waiting.as_deref() {
        None | Some("0") => Ok(()),
        Some(count) => Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "the synchronous standby has not confirmed a commit for {within:?} ({count} sessions wait for it); nothing \
                 was asked; see whether the standby runs and can be reached"
            ),
        )),
    }
}

/// Whether commits with this setting wait until a standby has them.
fn waits(synchronous_commit: &str) -> bool {
    matches!(synchronous_commit, "on" | "remote_apply" | "remote_write")
}

fn finding(setting: &str, found: Option<&str>, wanted: &str, keeps: impl Fn(&str) -> bool) -> Finding {
    let verdict = match found {
        None => Verdict::Unreadable,
        Some(found) if keeps(found) => Verdict::Kept,
        Some(_) => Verdict::Broken,
    };
    Finding { setting: setting.into(), found: found.map(Into::into), wanted: wanted.into(), verdict }
}
