//! What the commands need beside cargo, and how to get it: installed only when it is missing.

use anyhow::{Context, Result, ensure};

use crate::run::{cargo, program, skipped, started};

/// A program that tests start: a throwaway server, say.
struct Need {
    /// The program that must be there.
    program: &'static str,
    /// How it is asked for its version, which it must answer.
    version: &'static str,
    /// The Debian package that brings it.
    package: &'static str,
}

/// What the tests start. The stores of this workspace live in the process, so there is nothing to install yet.
const FOR_TESTS: &[Need] = &[];

/// What power cuts are made of: file systems and mounts.
const FOR_POWER_CUTS: &[Need] = &[
    Need { program: "mkfs.xfs", version: "-V", package: "xfsprogs" },
    Need { program: "mkfs.ext4", version: "-V", package: "e2fsprogs" },
    Need { program: "mount", version: "--version", package: "mount" },
    Need { program: "unshare", version: "--version", package: "util-linux" },
];

/// Gets what the tests start and this machine lacks.
pub(crate) fn for_tests() -> Result<()> {
    get("the tests", FOR_TESTS)
}

/// Gets what power cuts are made of and this machine lacks.
pub(crate) fn for_power_cuts() -> Result<()> {
    get("power cuts", FOR_POWER_CUTS)
}

fn get(whom: &str, needs: &[Need]) -> Result<()> {
    let missing = missing(needs, |need| program(need.program, [need.version]).succeeds());
    if missing.is_empty() {
        return Ok(());
    }
    let named = missing.join(" ");
    started(&format!("installing {named}"));
    ensure!(
        program("apt-get", ["--version"]).succeeds(),
        "{whom} need {named}, and there is no apt-get here: install them by hand"
    );
    let install = ["install", "--yes", "--no-install-recommends"];
    program("apt-get", install.into_iter().chain(missing))
        .env("DEBIAN_FRONTEND", "noninteractive")
        .show()
        .with_context(|| format!("{whom} need {named}: install them by hand"))
}

/// The packages of the programs that are not there.
fn missing(needs: &[Need], is_there: impl Fn(&Need) -> bool) -> Vec<&'static str> {
    needs.iter().filter(|need| !is_there(need)).map(|need| need.package).collect()
}

/// Whether `cargo NAME` is there, if need be after installing it.
pub(crate) fn cargo_tool(name: &str) -> bool {
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
pub(crate) fn has_cargo_tool(name: &str) -> bool {
    cargo([name, "--version"]).succeeds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        let needs = [
            Need { program: "there", version: "-V", package: "package-of-there" },
            Need { program: "not-there", version: "-V", package: "package-of-not-there" },
        ];
        assert_eq!(missing(&needs, |need| need.program == "there"), ["package-of-not-there"]);
    }
}
