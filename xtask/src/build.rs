//! One build for lints and tests: clippy compiles the workspace's own packages, lints them on the way, and what it makes is
//! what the tests run. Dependencies are compiled as always.

use anyhow::{Result, bail};
use xtask::needs;
use xtask::run::{Run, cargo, program, skipped, started};

use crate::servers::Servers;

/// Cargo runs this instead of rustc for packages of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";
/// How `cargo clippy -- -D warnings` hands its arguments on.
const CLIPPY_ARGS: (&str, &str) = ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");

/// What a part that cannot run means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The part is skipped, with a word why.
    Skip,
    /// The whole command fails.
    Refuse,
}

impl Missing {
    /// Whether the part can run; if not, what that means.
    pub(crate) fn unless(self, is_there: bool, part: &str, because: &str) -> Result<bool> {
        match self {
            _ if is_there => Ok(true),
            Self::Skip => {
                skipped(part, because);
                Ok(false)
            }
            Self::Refuse => bail!("{part} cannot run, because {because}"),
        }
    }
}

/// How the tests are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// By clippy, warnings as errors.
    Linted,
    /// By rustc alone.
    Plain,
}

impl Build {
    pub(crate) fn new(missing: Missing) -> Result<Self> {
        let is_there = program("clippy-driver", ["--version"]).succeeds();
        let because = "clippy is not installed (rustup component add clippy)";
        Ok(if missing.unless(is_there, "lints", because)? { Self::Linted } else { Self::Plain })
    }

    /// The variables that have cargo build this way.
    pub(crate) fn environment(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Linted => vec![(WRAPPER, "clippy-driver"), CLIPPY_ARGS],
            Self::Plain => Vec::new(),
        }
    }

    /// Cargo, building this way.
    pub(crate) fn cargo(self, words: &[&[&str]]) -> Run {
        let run = cargo(words.concat());
        self.environment().into_iter().fold(run, |run, (name, value)| run.env(name, value))
    }

    /// Builds every target of these packages.
    pub(crate) fn everything(self, packages: &[&str]) -> Result<()> {
        started(if self == Self::Linted { "build and lints" } else { "build" });
        self.cargo(&[&["build", "--all-targets"], packages]).show()
    }

    /// Runs the tests of these packages, before these servers.
    pub(crate) fn tests(self, packages: &[&str], servers: &Servers) -> Result<()> {
        started("tests");
        servers.name_to(self.tests_of(packages, "--no-tests=fail")).show()
    }

    /// Runs the tests of these packages that take too long for every run.
    pub(crate) fn long_tests(self, packages: &[&str]) -> Result<()> {
        started("long tests");
        if needs::cargo_tool("nextest") {
            self.cargo(&[&["nextest", "run", "--run-ignored", "only"], packages]).show()
        } else {
            self.cargo(&[&["test", "--all-targets"], packages, &["--", "--ignored"]]).show()
        }
    }

    /// Runs the tests of these packages, which start the servers that they need.
    pub(crate) fn tests_alone(self, packages: &[&str]) -> Result<()> {
        started("tests");
        self.tests_of(packages, "--no-tests=pass").show()
    }

    fn tests_of(self, packages: &[&str], if_none: &str) -> Run {
        if needs::cargo_tool("nextest") {
            self.cargo(&[&["nextest", "run", if_none], packages])
        } else {
            self.cargo(&[&["test", "--all-targets"], packages])
        }
    }

    /// Runs the tests in the documentation of these packages.
    pub(crate) fn doc_tests(self, packages: &[&str], servers: &Servers) -> Result<()> {
        started("tests in documentation");
        servers.name_to(self.cargo(&[&["test", "--doc"], packages])).show()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_is_skipped_or_refused_as_told() {
        assert!(Missing::Refuse.unless(true, "lints", "").is_ok_and(|runs| runs));
        assert!(Missing::Skip.unless(false, "lints", "of a test").is_ok_and(|runs| !runs));
        let refused = Missing::Refuse.unless(false, "lints", "clippy is gone").unwrap_err();
        assert_eq!(refused.to_string(), "lints cannot run, because clippy is gone");
    }
}
