//! `cargo xtask test` and `cargo xtask verify`: what a change must pass.

use anyhow::{Result, ensure};
use xtask::needs;
use xtask::run::{self, built, cargo, program, skipped, started};

use crate::build::{Build, Missing};
use crate::servers::Servers;
use crate::timetable::Timetable;
use crate::{crashes, packages, tidy};

/// Run everything that a change must pass: format, lints, tidy, tests, documentation tests, a few crashes.
///
/// Installs what the tests need and this machine lacks. Format and lints are skipped, with a word why,
/// where rustfmt or clippy is not installed; where they are, a warning is a failure. Lints come out of the build that the
/// tests run from. Ends with a table of where the minutes went.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only packages whose files differ from `main`, committed or not, and packages that depend on them; no crashes.
    #[arg(long)]
    changed: bool,
    /// Also what takes longer: a build without features, the lints of the measurements, the documentation, licences.
    #[arg(long, conflicts_with = "changed")]
    all: bool,
}

/// Run what `test --all` runs, and skip nothing.
///
/// Fails where rustfmt or clippy is missing, instead of skipping them.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.changed {
        return changed();
    }
    everything(Missing::Skip, args.all)?;
    run::passed("everything that could run here");
    Ok(())
}

pub(crate) fn verify(_: &VerifyArgs) -> Result<()> {
    everything(Missing::Refuse, true)?;
    run::passed("verified");
    Ok(())
}

fn everything(missing: Missing, has_extras: bool) -> Result<()> {
    let mut timetable = Timetable::default();
    timetable.time("format", || format(missing, &["--all"]))?;
    timetable.time("tidy", || tidy::run(&tidy::Args::default()))?;
    needs::for_tests()?;
    let build = Build::new(missing)?;
    let all = ["--workspace", "--all-features"];
    if has_extras {
        // Before the build with features, which puts the binary that the tests start into its place.
        timetable.time("build without features", || without_features(build))?;
    }
    timetable.time("build and lints", || build.everything(&all))?;
    timetable.time("packages", packages::package)?;
    if has_extras {
        timetable.time("lints of the measurements", bench_lints)?;
        timetable.time("documentation", docs)?;
        timetable.time("dependencies", dependencies)?;
    }
    let servers = timetable.time("servers", || Servers::start(&built("debug", "test-services")?))?;
    timetable.time("tests", || build.tests(&all, &servers))?;
    timetable.time("tests in documentation", || build.doc_tests(&all, &servers))?;
    drop(servers);
    if has_extras {
        timetable.time("long tests", || build.long_tests(&all))?;
    }
    started("crashes");
    timetable.time("crashes", || crashes::few(&built("debug", "proofs")?, &build.environment()))
}

/// Format, tidy, lints and tests of what a change touches.
fn changed() -> Result<()> {
    let names = packages::changed()?;
    if names.is_empty() {
        run::passed("no package differs from main");
        return Ok(());
    }
    started(&format!("packages: {}", names.join(" ")));
    let mut timetable = Timetable::default();
    let mut packages: Vec<_> = names.iter().flat_map(|name| ["--package", name]).collect();
    timetable.time("format", || format(Missing::Skip, &packages))?;
    timetable.time("tidy", || tidy::run(&tidy::Args::default()))?;
    needs::for_tests()?;
    let build = Build::new(Missing::Skip)?;
    packages.push("--all-features");
    timetable.time("build and lints", || build.everything(&packages))?;
    // Tests start the servers that they use themselves.
    timetable.time("tests", || build.tests_alone(&packages))
}

/// The format of the files of these packages, and of the measurements.
fn format(missing: Missing, packages: &[&str]) -> Result<()> {
    let is_there = needs::has_cargo_tool("fmt");
    if missing.unless(is_there, "format", "rustfmt is not installed (rustup component add rustfmt)")? {
        started("format");
        cargo([&["fmt", "--check"], packages].concat()).show()?;
        cargo(["fmt", "--all", "--check", "--manifest-path", "bench/Cargo.toml"]).show()?;
    }
    Ok(())
}

/// What a build without features is asked for, and what it must name as missing.
const WITHOUT_FEATURES: [(&str, &str); 7] = [
    ("--store postgres://127.0.0.1:1/d stats", "PostgreSQL; build with `--features postgres`"),
    ("--store redis://127.0.0.1:1 stats", "Redis; build with `--features redis`"),
    (
        "--store memory: consume --pipeline p --exec true --source nats://h/S?durable=d",
        "NATS; build with `--features nats`",
    ),
    (
        "--store memory: consume --pipeline p --exec true --source amqp://h/v?queue=q",
        "RabbitMQ; build with `--features rabbitmq`",
    ),
    (
        "--store memory: consume --pipeline p --exec true --source redis://h?stream=s&group=g",
        "Redis Streams; build with `--features redis-streams`",
    ),
    (
        "--store memory: consume --pipeline p --exec true --source kafka://h:1/t?group=g",
        "Kafka; build with `--features kafka`",
    ),
    (
        "--store memory: serve --listen 127.0.0.1:0 --otlp http://127.0.0.1:4318",
        "OTLP; build with `--features otlp`",
    ),
];

/// The command line as a newcomer builds it, which no other step does: it says which feature is missing.
fn without_features(build: Build) -> Result<()> {
    started("build without features");
    build.cargo(&[&["build", "--package", "semel-cli"]]).show()?;
    for (line, missing) in WITHOUT_FEATURES {
        let ran = program(built("debug", "semel")?, line.split(' ')).into_command().output()?;
        let error = String::from_utf8_lossy(&ran.stderr);
        let is_named = error.contains(&format!("this build has no {missing}"));
        ensure!(!ran.status.success() && is_named, "`semel {line}` did not name the feature: {error}");
    }
    build.cargo(&[&["test", "--package", "semel-server", "--lib", "without_features"]]).show()
}

/// The measurements are a workspace of their own, which nothing else would notice to be broken.
fn bench_lints() -> Result<()> {
    started("lints of the measurements");
    cargo(["clippy", "--manifest-path", "bench/Cargo.toml", "--all-targets", "--", "-D", "warnings"]).show()
}

/// The documentation builds, and no link in it is broken; the pages of private modules are read too, by those
/// who work on them.
fn docs() -> Result<()> {
    started("documentation");
    let doc = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    cargo(doc).env("RUSTDOCFLAGS", "-D warnings").show()
}

/// Licences, bans and sources of the dependencies. Advisories come from the network and change by the day:
/// `cargo deny check advisories` is for a person, not for a build that must pass tomorrow as it does today.
fn dependencies() -> Result<()> {
    if !needs::has_cargo_tool("deny") {
        skipped("dependencies", "cargo-deny is not installed (cargo install cargo-deny --locked)");
        return Ok(());
    }
    started("dependencies");
    cargo(["deny", "check", "bans", "licenses", "sources"]).show()
}
