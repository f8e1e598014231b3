//! What the commands need beside cargo, and how to get it: installed only when it is missing.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::run::{cargo, program, skipped, started};

/// A program that is started: a throwaway server, say.
struct Need {
    /// How to find out whether it is there.
    look: Look,
    /// The Debian package that brings it.
    package: &'static str,
}

/// How to find out whether a program is there.
enum Look {
    /// It is on the path, and answers when it is asked for its version this way.
    Version(&'static str, &'static str),
    /// All of these are on the path, or at their own.
    Programs(&'static [&'static str]),
    /// Some other way.
    Ask(fn() -> bool),
}

impl Need {
    fn is_there(&self) -> bool {
        match self.look {
            Look::Version(name, version) => program(name, [version]).succeeds(),
            Look::Programs(names) => names.iter().all(|name| has_program(name)),
            Look::Ask(is_there) => is_there(),
        }
    }
}

/// Where Debian puts PostgreSQL's programs, a folder for each version, and the oldest that will do.
const POSTGRES: &str = "/usr/lib/postgresql";
const POSTGRES_LEAST: u32 = 15;
/// Where Debian puts RabbitMQ's server.
const RABBITMQ: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// Whether this program is there: a path, or a name to be looked for.
fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.any(|folder| folder.join(name).is_file())
}

fn has_postgres() -> bool {
    let versions = Path::new(POSTGRES).read_dir().into_iter().flatten().flatten();
    let is_new = |version: &PathBuf| {
        let number = version.file_name().and_then(|name| name.to_str()?.parse().ok());
        number.is_some_and(|number: u32| number >= POSTGRES_LEAST)
    };
    let is_there = |version: PathBuf| version.join("bin/initdb").is_file();
    has_program("initdb") || versions.map(|entry| entry.path()).filter(is_new).any(is_there)
}

/// What the tests start. Debian keeps PostgreSQL's server off the path. Its packages also start servers of their own
/// on the usual ports where there is a service manager; nothing here uses those.
const FOR_TESTS: &[Need] = &[
    Need { look: Look::Ask(has_postgres), package: "postgresql" },
    Need { look: Look::Programs(&["pgbouncer"]), package: "pgbouncer" },
    Need { look: Look::Programs(&["redis-server"]), package: "redis-server" },
    Need { look: Look::Programs(&["nats-server"]), package: "nats-server" },
    Need { look: Look::Programs(&[RABBITMQ, "epmd"]), package: "rabbitmq-server" },
    Need { look: Look::Version("python3", "--version"), package: "python3" },
    Need { look: Look::Version("node", "--version"), package: "nodejs" },
    Need { look: Look::Version("tsc", "--version"), package: "node-typescript" },
    Need { look: Look::Version("npm", "--version"), package: "npm" },
    Need { look: Look::Programs(&["promtool"]), package: "prometheus" },
    NGINX,
    BROWSER,
];

/// What the layer is tested behind, and measured beside. Debian keeps it off the path of users.
const NGINX: Need = Need { look: Look::Programs(&["nginx"]), package: "nginx-light" };

/// What looks at the dashboard.
const BROWSER: Need = Need { look: Look::Programs(&["/usr/bin/chromium"]), package: "chromium" };

/// What power cuts are made of: file systems and mounts.
const FOR_POWER_CUTS: &[Need] = &[
    Need { look: Look::Version("mkfs.xfs", "-V"), package: "xfsprogs" },
    Need { look: Look::Version("mkfs.ext4", "-V"), package: "e2fsprogs" },
    Need { look: Look::Version("mount", "--version"), package: "mount" },
    Need { look: Look::Version("unshare", "--version"), package: "util-linux" },
];

/// What the layer and the proxy are measured beside.
const FOR_HTTP: &[Need] = &[Need { look: Look::Programs(&["redis-server"]), package: "redis-server" }, NGINX];

/// Gets what the tests start and this machine lacks.
pub fn for_tests() -> Result<()> {
    get("the tests", FOR_TESTS)
}

/// Gets the browser, if this machine lacks it.
pub fn for_browser() -> Result<()> {
    get("pictures of pages", &[BROWSER])
}

/// Gets what power cuts are made of and this machine lacks.
pub fn for_power_cuts() -> Result<()> {
    get("power cuts", FOR_POWER_CUTS)
}

/// Gets what the layer and the proxy are measured beside and this machine lacks.
pub fn for_http() -> Result<()> {
    get("measurements over HTTP", FOR_HTTP)
}

fn get(whom: &str, needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let named = missing.join(" ");
    started(&format!("installing {named}"));
    ensure!(
        program("apt-get", ["--version"]).succeeds(),
        "{whom} need {named}, and there is no apt-get here: install them by hand"
    );
    // A machine that was never asked before does not know which packages there are.
    install(&missing)
        .or_else(|_| program("apt-get", ["update"]).show().and_then(|()| install(&missing)))
        .with_context(|| format!("{whom} need {named}: install them by hand"))
}

fn install(packages: &[&str]) -> Result<()> {
    let install = ["install", "--yes", "--no-install-recommends"];
    let line = install.iter().chain(packages);
    program("apt-get", line).env("DEBIAN_FRONTEND", "noninteractive").show()
}

/// The packages of the programs that are not there.
fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|need| !need.is_there()).map(|need| need.package).collect()
}

/// Whether `cargo NAME` is there, if need be after installing it.
pub fn cargo_tool(name: &str) -> bool {
    if has_cargo_tool(name) {
        return true;
    }
    started(&format!("installing cargo-{name}"));
    match cargo(["install", &format!("cargo-{name}"), "--locked"]).show() {
        Ok(()) => has_cargo_tool(name),
        Err(error) => {
            skipped(&format!("cargo {name}"), &format!("it could not be installed: {error}"));
            false
        }
    }
}

/// Whether `cargo NAME` is there.
pub fn has_cargo_tool(name: &str) -> bool {
    cargo([name, "--version"]).succeeds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        let needs = [
            Need { look: Look::Ask(|| true), package: "there" },
            Need { look: Look::Ask(|| false), package: "not-there" },
            Need { look: Look::Version("true", "--version"), package: "on-the-path" },
            Need { look: Look::Version("no-such-program-as-this", "-V"), package: "not-on-the-path" },
        ];
        assert_eq!(missing(&needs), ["not-there", "not-on-the-path"]);
    }
}
