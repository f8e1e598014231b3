//! Who the servers run as: PostgreSQL refuses to run as root, and so should everything.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Who may be there, the best first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// Somebody without rights; nobody else than us where we are not root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User(Option<(u32, u32)>);

impl User {
    /// Us, or somebody without rights if we are root.
    pub(crate) fn unprivileged() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd").context("cannot tell which users there are")?;
        let found = NAMES.iter().find_map(|name| ids(&users, name));
        found.map(|ids| Self(Some(ids))).context(
            "servers do not run as root, and there is no user `postgres` or `nobody` to run them as: add one",
        )
    }

    /// Gives a folder or file to this user.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        chown(path, Some(user), Some(group)).with_context(|| format!("cannot give {} away", path.display()))
    }

    /// A program that runs as this user.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

/// User and group of this name.
fn ids(users: &str, name: &str) -> Option<(u32, u32)> {
    users.lines().find_map(|line| {
        let mut words = line.split(':');
        (words.next() == Some(name)).then_some(())?;
        Some((words.nth(1)?.parse().ok()?, words.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "root:x:0:0::/root:/bin/sh\npostgresql:x:7:8::/:/bin/sh\npostgres:x:101:104:a:/b:/c\n";
        assert_eq!(ids(users, "postgres"), Some((101, 104)));
        assert_eq!(ids(users, "nobody"), None);
    }
}
