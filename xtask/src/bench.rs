//! `cargo xtask bench`: side-by-side measurements, from the workspace in `bench/`.

use anyhow::Result;
use clap::Subcommand;

use xtask::needs;
use xtask::run::cargo;

/// Measure against what projects write themselves, on this machine.
///
/// Prints a table and writes it to bench/results, with a chart and the numbers as JSON. Close everything else
/// first: a neighbour on a core shows in the result.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The engine and the memory store, beside a plain `DashMap`.
    Memory(Rest),
    /// The embedded durable store, beside general embedded databases.
    File(Rest),
    /// The store on PostgreSQL, beside the per-call pattern and cratestack-sqlx.
    Postgres(Rest),
    /// The store on Redis, beside SET NX, GET and SET.
    Redis(Rest),
    /// The layer and the proxy, beside a bare handler, other layers, and nginx.
    Http(Rest),
    /// Events through a pipeline: by store, by batch, new ones and duplicates.
    Stream(Rest),
    /// The claim server: single requests and batches, beside a bare echo and Redis.
    Server(Rest),
}

#[derive(Debug, clap::Args)]
struct Rest {
    /// Options for the measurement itself; `-- --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (what, Rest { rest }) = match &args.what {
        What::Memory(rest) => ("memory", rest),
        What::File(rest) => ("file", rest),
        What::Postgres(rest) => ("postgres", rest),
        What::Redis(rest) => ("redis", rest),
        What::Http(rest) => ("http", rest),
        What::Stream(rest) => ("stream", rest),
        What::Server(rest) => ("server", rest),
    };
    if matches!(what, "http" | "server") {
        needs::for_http()?;
        // The proxy and the server are measured as the program that people run.
        cargo(["build", "--release", "--package", "semel-cli"]).show()?;
    }
    let line = ["run", "--release", "--manifest-path", "bench/Cargo.toml", "--", what];
    // SQLite finds out by itself only when its own build asks the system; as most packages have it, it calls
    // fdatasync, and without this fsync, which is slower.
    let cargo = cargo(line.into_iter().chain(rest.iter().map(String::as_str)));
    cargo.env("LIBSQLITE3_FLAGS", "-DHAVE_FDATASYNC=1").show()
}
