//! What the promise needs of the server's settings, and what was found.

use semel::store::{Finding, Verdict};
use semel::{Error, ErrorKind, Result};
use tokio_postgres::Client;

use crate::config::{Config, Durability, Role};
use crate::error::{Sent, error};

/// The settings as the session sees them; null where they cannot be read.
const SETTINGS: &str = "SELECT current_setting('fsync', true), current_setting('full_page_writes', true), \
     current_setting('synchronous_commit', true), current_setting('synchronous_standby_names', true), \
     CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END";

/// What was found, setting by setting.
pub(crate) async fn findings(client: &Client) -> Result<Vec<Finding>> {
    let row = client.query_one(SETTINGS, &[]).await.map_err(|failed| error(failed, Sent::No))?;
    let read = |column: usize| row.try_get::<_, Option<String>>(column).ok().flatten();
    let standbys = read(3).filter(|names| !names.is_empty());
    let is_on = |found: &str| found == "on";
    // Without a synchronous standby, all but `off` wait for this server's disk, which is all there is to wait for.
    let commits = |found: &str| match standbys {
        Some(_) => matches!(found, "on" | "remote_apply" | "remote_write"),
        None => found != "off",
    };
    let commits_wanted =
        if standbys.is_some() { "on, remote_apply or remote_write" } else { "on (anything but off)" };
    Ok(vec![
        finding("fsync", read(0), "on", is_on),
        finding("full_page_writes", read(1), "on", is_on),
        finding("synchronous_commit", read(2), commits_wanted, commits),
        finding("role", read(4), "primary", |found| found == "primary"),
    ])
}

fn finding(setting: &str, found: Option<String>, wanted: &str, keeps: impl Fn(&str) -> bool) -> Finding {
    let verdict = match &found {
        None => Verdict::Unreadable,
        Some(found) if keeps(found) => Verdict::Kept,
        Some(_) => Verdict::Broken,
    };
    Finding { setting: setting.into(), found: found.map(Into::into), wanted: wanted.into(), verdict }
}

/// Refuses a server whose settings do not keep the promise, or says so in the log if that was asked for.
pub(crate) async fn demand(client: &Client, config: &Config) -> Result<()> {
    for finding in findings(client).await? {
        let Finding { setting, found, wanted, verdict } = &finding;
        let found = found.as_deref().unwrap_or("not readable");
        match verdict {
            Verdict::Kept => {}
            Verdict::Broken if &**setting == "role" && config.role == Role::Any => {}
            Verdict::Unreadable => {
                tracing::warn!(%setting, %wanted, "semel: a setting that the promise needs cannot be read");
            }
            Verdict::Broken if &**setting == "role" => {
                let message = "this PostgreSQL is a standby, which takes no writes; give the primary's URL, or name \
                               all servers in one: postgres://a,b/database";
                return Err(Error::new(ErrorKind::Unavailable, message));
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
