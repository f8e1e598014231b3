//! The parts that `test` and `verify` are made of.

use anyhow::{Result, bail};

use crate::run::{cargo, skipped, started};
use crate::servers::Servers;
use crate::{crash, needs};

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
    fn unless(self, is_there: bool, part: &str, because: &str) -> Result<bool> {
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

/// The format of every file.
pub(crate) fn format(missing: Missing) -> Result<()> {
    let is_there = needs::has_cargo_tool("fmt");
    if missing.unless(is_there, "format", "rustfmt is not installed (rustup component add rustfmt)")? {
        started("format");
        cargo(["fmt", "--all", "--check"]).show()?;
        cargo(["fmt", "--all", "--check", "--manifest-path", "bench/Cargo.toml"]).show()?;
    }
    Ok(())
}

/// Clippy over everything that is compiled, warnings as errors.
pub(crate) fn lints(missing: Missing) -> Result<()> {
    let is_there = needs::has_cargo_tool("clippy");
    if missing.unless(is_there, "lints", "clippy is not installed (rustup component add clippy)")? {
        started("lints");
        let clippy = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        cargo(clippy).show()?;
    }
    Ok(())
}

/// The measurements are a workspace of their own, which nothing else would notice to be broken.
pub(crate) fn bench_lints() -> Result<()> {
    started("lints of the measurements");
    let bench = ["clippy", "--manifest-path", "bench/Cargo.toml", "--all-targets", "--", "-D", "warnings"];
    cargo(bench).show()
}

/// The documentation builds, and no link in it is broken; the pages of private modules are read too, by those
/// who work on them.
pub(crate) fn docs() -> Result<()> {
    started("documentation");
    let doc = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    cargo(doc).env("RUSTDOCFLAGS", "-D warnings").show()
}

/// Licences, bans and sources of the dependencies. Advisories come from the network and change by the day:
/// `cargo deny check advisories` is for a person, not for a build that must pass tomorrow as it does today.
pub(crate) fn dependencies() -> Result<()> {
    let because = "cargo-deny is not installed (cargo install cargo-deny --locked)";
    if Missing::Skip.unless(needs::has_cargo_tool("deny"), "dependencies", because)? {
        started("dependencies");
        cargo(["deny", "check", "bans", "licenses", "sources"]).show()?;
    }
    Ok(())
}

/// All tests, the ones in documentation included, and a few crashes. The examples are built together with the tests.
pub(crate) fn tests() -> Result<()> {
    needs::for_tests()?;
    started("servers");
    let servers = Servers::start()?;
    started("tests");
    let tests = if needs::cargo_tool("nextest") {
        cargo(["nextest", "run", "--workspace", "--all-features", "--no-tests=fail"])
    } else {
        cargo(["test", "--workspace", "--all-features", "--all-targets"])
    };
    servers.name_to(tests).show()?;
    started("tests in documentation");
    servers.name_to(cargo(["test", "--workspace", "--all-features", "--doc"])).show()?;
    drop(servers);
    started("crashes");
    crash::few()
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
