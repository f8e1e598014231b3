//! The command as a whole, and what its commands share: scopes, words, and what is said to arguments that mean nothing.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::check::CheckArgs;
use crate::consume::{CODES, ConsumeArgs, ENVIRONMENT};
use crate::demo::DemoArgs;
use crate::file::FileCommand;
use crate::keys::KeysCommand;
use crate::migrate;
use crate::offsets::OffsetsArgs;
use crate::proxy::ProxyArgs;
use crate::receipts::ReceiptsArgs;
use crate::serve::ServeArgs;
use crate::shell::{CompletionsArgs, ManArgs};
use crate::stats::StatsArgs;
use crate::store_arg::StoreArg;
use crate::sweep::SweepArgs;
use crate::token::TokenCommand;
use crate::transfer::{ExportArgs, ImportArgs};
use crate::watch::WatchArgs;

/// Which stores there are.
const STORES: &str = "Stores:\n  \
    file:FOLDER                       on this machine's disk, for one process (default file:./semel-data)\n  \
    postgres://USER@HOST/DATABASE     shared by many machines; the password in the URL, or in PGPASSWORD\n  \
    redis://HOST, rediss://HOST       shared by many machines, with TLS\n  \
    redis+cluster://HOST,HOST         a Redis Cluster; redis+sentinel://HOST for Sentinel\n  \
    memory:                           inside this process: only for bench\n  \
    http://HOST:PORT, https://…       what a running `semel serve` or `semel proxy` has, through that process;\n                                    \
    a token in SEMEL_TOKEN or --token-file";

/// What to try first.
const EXAMPLES: &str = "Examples:\n  \
    semel demo                                       see it work, in a few seconds\n  \
    semel proxy --upstream http://127.0.0.1:3000     safe retries for any HTTP service\n  \
    semel serve                                      keys for workers in every language, and a dashboard\n  \
    semel consume --source file:orders.jsonl --pipeline billing --exec ./bill
  \
    semel stats                                      how many records, and which are stuck?\n  \
    semel keys list --state held                     what waits for a person\n  \
    semel keys show 3f2a9c0d                         everything about one of them\n  \
    semel --store http://127.0.0.1:4747 keys list    what a running `semel serve` has\n  \
    semel --store postgres://db/semel check          does the store keep its promise?\n  \
    semel bench --store memory: --keys 1000000       what can a store do here?\n\n\
    Ends with code 0 if all went well, 1 if something is wrong or could not be done, 2 if the arguments\n\
    mean nothing. `semel help COMMAND` explains every option and every number.";

/// semel makes work happen once. A caller claims a key; exactly one caller gets to run, and everyone
/// else is told what happened: the stored outcome is replayed, or the key is busy.
///
/// Programs use it as a library. This command line is for the people who run them.
#[derive(Debug, Parser)]
#[command(
    name = "semel",
    version,
    after_help = EXAMPLES,
    after_long_help = format!("{STORES}\n\n{EXAMPLES}")
)]
pub(crate) struct Root {
    #[command(flatten)]
    store: StoreArg,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Give any HTTP service safe retries: a proxy before it, and nothing in it changed
    ///
    /// A request with an Idempotency-Key runs once. Its retries get the same answer, byte for byte; the key with another body is
    /// refused. Requests without a key pass as they are. SIGTERM lets running requests finish; SIGHUP reads the file again.
    #[command(after_help = "Examples:\n  \
        semel proxy --upstream http://127.0.0.1:3000\n  \
        semel proxy --config semel.toml --check          what does it mean, and is it right?\n  \
        semel proxy --config semel.toml --listen 0.0.0.0:80\n  \
        SEMEL_STORE=postgres://db/semel semel proxy --upstream http://127.0.0.1:3000\n\n\
        The command line goes before the file, and the file before SEMEL_STORE. Try it:\n  \
        curl -i -XPOST http://127.0.0.1:8080/charges -H 'Idempotency-Key: order-1042' -d 'cents=4200'\n  \
        ... and the same once more: it has `idempotent-replayed: true`.")]
    Proxy(Box<ProxyArgs>),
    /// Let workers in any language claim keys over HTTP, and people see what runs and what is stuck
    ///
    /// The API, its description (/docs, /openapi.json) and the dashboard are on one port; any number of servers may share one store.
    /// Without tokens it listens on loopback only, and everybody on this machine may do everything. SIGTERM lets running requests
    /// finish; SIGHUP reads the tokens again.
    #[command(after_help = "Examples:\n  \
        semel serve\n  \
        semel token new --name on-call --role operate 2>> tokens.toml\n  \
        SEMEL_STORE=postgres://db/semel semel serve --listen 0.0.0.0:4747 --tokens tokens.toml \\\n    \
        --tls-certificate server.pem --tls-key server.key --audit audit.jsonl\n  \
        semel serve --config semel.toml --check          what does it mean, and is it right?\n\n\
        The command line goes before the file, and the file before SEMEL_STORE and SEMEL_TOKENS. Try it:\n  \
        curl -XPOST http://127.0.0.1:4747/v1/claim -H 'Content-Type: application/json' \\\n    \
        -d '{\"operation\": \"charge\", \"name\": \"order-1042\"}'")]
    Serve(Box<ServeArgs>),
    /// Make tokens for `semel serve`: who may ask, and what
    #[command(subcommand)]
    Token(TokenCommand),
    /// See it work: payments by clients that lose answers, without semel and with it
    ///
    /// Starts a small payment API that charges a counter and fails at times, and clients that hang up, lose answers and ask again
    /// with the same key. First without semel, then with the proxy between them, on an embedded store in a folder that is removed
    /// afterwards. Every number was counted, by the clients or by the API. Takes a few seconds, and needs nothing else.
    #[command(after_help = "Examples:\n  \
        semel demo\n  \
        semel demo --keep                                leave it up, to try by hand with curl\n  \
        semel demo --requests 1000 --seed 8              another story\n\n\
        Ends with code 1 if a payment was charged twice, or not at all, with semel.")]
    Demo(DemoArgs),
    /// Run a command for each event of a stream, once
    ///
    /// Reads events from a broker or a file, and runs the command for each that has no receipt yet, with the payload on its standard
    /// input. Only once the receipt is written, the event is acknowledged, or the offset of its stream moves on: a crash at any
    /// moment is harmless to whatever is behind a receipt. SIGTERM and Ctrl-C let what runs finish; a second one ends at once.
    #[command(after_help = format!("{CODES}\n\n{ENVIRONMENT}\n\n\
        Examples:\n  \
        semel consume --source file:orders.jsonl --pipeline billing --key pointer:/id --exec ./bill\n  \
        semel consume --source 'nats://127.0.0.1/ORDERS?durable=billing' --pipeline billing --exec ./bill\n  \
        semel consume --source 'file:orders.jsonl?follow' --pipeline billing --exec ./bill --dead-letters dead.jsonl\n  \
        tail -n +1 -f orders.jsonl | semel consume --source - --pipeline billing --key pointer:/id --exec ./bill"))]
    Consume(Box<ConsumeArgs>),
    /// How far each pipeline has read its streams; `offsets move` to read again, or to skip
    #[command(after_help = "Examples:\n  \
        semel offsets                                    every pipeline, every stream\n  \
        semel offsets orders --json | jq -r .position    for scripts\n  \
        semel offsets move orders events.jsonl --to start")]
    Offsets(OffsetsArgs),
    /// Which events a pipeline has processed, put aside, or waits with
    ///
    /// The newest first. Reads all records of the pipeline, page by page, and counts them.
    #[command(after_help = "Examples:\n  \
        semel receipts orders                            the newest 50, and how many there are\n  \
        semel receipts orders --dead                     what could not be processed, and why\n  \
        semel receipts orders --held                     what waits for a person\n  \
        semel receipts show orders order-1042            everything about one event\n  \
        semel receipts requeue orders order-1042         have a dead letter processed again\n  \
        semel receipts record orders order-1042          pass it over\n  \
        semel receipts release orders order-1042         have a held one processed")]
    Receipts(ReceiptsArgs),
    /// Find, show and settle single keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Count records by state, and find the oldest that run or are held
    ///
    /// Reads the whole store, page by page. `lapsed` are running records that were not renewed in time, and that the next claim runs again.
    #[command(after_help = "Examples:\n  \
        semel stats\n  \
        semel stats --json | jq .held                    for an alarm")]
    Stats(StatsArgs),
    /// Watch the counts change
    ///
    /// Every look reads the whole store; if that takes longer than --every, the next look begins at once. Without a terminal,
    /// a line a look.
    #[command(after_help = "Examples:\n  \
        semel watch                                      until Ctrl-C\n  \
        semel watch --every 10s --for 1h >> counts.log   for later")]
    Watch(WatchArgs),
    /// Remove what is past its retention
    ///
    /// Removes nothing that still counts. Programs sweep by themselves, and need no such command.
    #[command(after_help = "Examples:\n  \
        semel sweep\n  \
        semel sweep --limit 100000                       not more than that in one go")]
    Sweep(SweepArgs),
    /// Check the settings of the store against its promise
    ///
    /// Ends with code 1 if a setting breaks the promise, such as fsync being off.
    #[command(after_help = "Examples:\n  \
        semel --store postgres://db/semel check\n  \
        semel check --json | jq '.findings[] | select(.verdict != \"kept\")'")]
    Check(CheckArgs),
    /// Make the store's schema, or bring it up to date
    ///
    /// Only stores on `postgres://` have one. Safe to run again, and while other processes run.
    #[command(after_help = "Examples:\n  semel --store postgres://db/semel migrate")]
    Migrate,
    /// Write all records as lines of JSON
    ///
    /// The file is as secret as the store: it holds outcomes and permit ids. Records that change while it is written may be in
    /// it as they were before or after; for an exact copy, stop the callers first.
    #[command(after_help = "Examples:\n  \
        semel export --to semel.jsonl\n  \
        semel export --to semel.jsonl --resume           go on after it was cut\n  \
        semel export | zstd > semel.jsonl.zst")]
    Export(ExportArgs),
    /// Read records that were exported into a store
    ///
    /// Records that are there are left alone, so that the same command may be run again after anything went wrong. A damaged line
    /// is named, and refuses the import before anything is written (from standard input: up to that line). Moments, attempts,
    /// retention and outcomes are kept; versions are this store's own, so fences start anew. What was running is held until
    /// somebody decides, because nobody knows whether the run went on.
    #[command(after_help = "Examples:\n  \
        semel --store postgres://db/semel import --from semel.jsonl\n  \
        zstdcat semel.jsonl.zst | semel --store file:copy import")]
    Import(ImportArgs),
    /// Measure what a store can do on this machine
    ///
    /// First every key is claimed and completed once (a cycle). Then the same keys are claimed again in
    /// random order, and each must be replayed. Cycles and replays are counted per second; p50, p99 and
    /// max say how long a single claim, complete or replay took.
    #[command(
        after_help = "Only a store that is named by --store is filled with keys; SEMEL_STORE is not asked, and without \
        --store it is memory:.\nUse a new folder or database: keys that are there already are not run again, and end the measurement.\n\n\
        Examples:\n  \
        semel bench --store file:bench-data --callers 64 what can this disk do?\n  \
        semel bench --callers 64 --json | jq .runs       for scripts"
    )]
    Bench(BenchArgs),
    /// Look at every byte of an embedded store, or copy what is whole
    #[command(subcommand)]
    File(FileCommand),
    /// Write completions for a shell
    #[command(after_help = "Examples:\n  \
        semel completions bash > /etc/bash_completion.d/semel\n  \
        semel completions zsh > \"${fpath[1]}/_semel\"\n  \
        semel completions fish > ~/.config/fish/completions/semel.fish")]
    Completions(CompletionsArgs),
    /// Write the man page
    #[command(after_help = "Examples:\n  \
        semel man | man -l -\n  \
        semel man --to /usr/local/share/man/man1")]
    Man(ManArgs),
}

impl Root {
    /// Does what was typed. An error is a `clap::Error` if the arguments mean nothing.
    pub(crate) async fn run(self) -> Result<()> {
        let store = &self.store;
        match self.command {
            Command::Proxy(args) => args.run(store).await,
            Command::Serve(args) => args.run(store).await,
            Command::Token(command) => command.run(),
            Command::Demo(args) => args.run().await,
            Command::Consume(args) => args.run(store).await,
            Command::Offsets(args) => args.run(store).await,
            Command::Receipts(args) => args.run(store).await,
            Command::Keys(command) => command.run(store).await,
            Command::Stats(args) => args.run(store).await,
            Command::Watch(args) => args.run(store).await,
            Command::Sweep(args) => args.run(store).await,
            Command::Check(args) => args.run(store).await,
            Command::Migrate => migrate::run(store).await,
            Command::Export(args) => args.run(store).await,
            Command::Import(args) => args.run(store).await,
            Command::Bench(args) => args.run(store).await,
            Command::File(command) => command.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
        }
    }
}

/// The definition of the arguments.
pub(crate) fn definition() -> clap::Command {
    Root::command()
}

/// What is said to arguments that mean nothing; the process ends with code 2.
pub(crate) fn refused(message: &str) -> clap::Error {
    definition().error(ErrorKind::ValueValidation, message)
}

pub(crate) fn at_least_one(option: &str, value: usize) -> Result<NonZeroUsize, clap::Error> {
    NonZeroUsize::new(value).ok_or_else(|| refused(&format!("{option} is 0; give at least 1")))
}

/// From 1 to `most`.
pub(crate) fn at_most(option: &str, value: usize, most: usize) -> Result<NonZeroUsize, clap::Error> {
    let value = at_least_one(option, value)?;
    if value.get() > most {
        return Err(refused(&format!("{option} is {value}; {most} at most")));
    }
    Ok(value)
}

/// The parts of a scope, outermost first.
pub(crate) type Scope = Vec<Box<str>>;

/// Reads one of these words as its value; `--help` explains each.
pub(crate) fn words<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let possible = words.each_ref().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(possible).try_map(move |typed| {
        let found = words.iter().find(|(word, ..)| *word == typed);
        found.map(|(.., value)| value.clone()).ok_or("there is no such word")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed(line: &str) -> Result<Root, clap::Error> {
        Root::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn what_is_typed_means_what_it_says() {
        let line = "semel bench --keys 7 --seconds 0.5 --callers 2 --json";
        let Command::Bench(bench) = parsed(line).expect("is fine").command else {
            panic!("{line} measures");
        };
        let plan = bench.plan().expect("is fine");
        assert_eq!((plan.keys.get(), plan.callers.get()), (7, 2));
        assert_eq!((plan.replays_for, bench.json), (Duration::from_millis(500), true));
    }

    #[test]
    fn a_repair_needs_somewhere_to_go() {
        assert!(parsed("semel file repair data").is_err());
        let root = parsed("semel file repair data --to copy").expect("is fine");
        let Command::File(FileCommand::Repair { folder, to, json }) = root.command else {
            panic!("repair is about files");
        };
        assert_eq!((folder, to, json), ("data".into(), "copy".into(), false));
    }

    #[tokio::test]
    async fn what_cannot_be_meant_is_refused() {
        for line in [
            "bench --keys 0",
            "bench --callers 0",
            "bench --seconds -1",
            "bench --seconds nan",
            "bench --store lost:",
            "bench --keys 50000001",
            "keys list --limit 0",
            "keys list --state stuck",
            "keys list --older-than 10",
            "keys list --all --limit 3",
            "keys list --outcome",
            "keys show",
            "keys show 3f2",
            "keys show --operation charge",
            "keys show --name a --scope b",
            "keys show 3f2a --operation charge --name a",
            "keys resolve 3f2a",
            "keys resolve 3f2a --release --outcome-file f",
            "keys resolve 3f2a --release --kind success",
            "watch --every 1ms",
            "watch --looks 0",
            "sweep --limit 0",
            "export --resume",
            "export --resume --to f --after 3f2a",
            "import --running run",
            "completions cmd",
            "demo --requests 0",
            "consume --source - --exec x",
            "consume --source - --pipeline p",
            "consume --source mqtt://h --pipeline p --exec x",
            "consume --source - --pipeline p --exec x --parallel 0",
            "consume --source - --pipeline p --exec x --attempts-max 0",
            "consume --source - --pipeline p --exec x --key body",
            "consume --source - --pipeline p --exec x --checkpoint often",
            "consume --source - --pipeline p --exec x --lease 0s",
            "consume --source - --pipeline p --exec x --dead-letters f --dead-letter-exec y",
            "offsets move orders events",
            "offsets move orders events --to end",
            "receipts",
            "receipts orders --limit 0",
            "receipts record orders",
            "proxy --listen 8080",
            "serve --listen 8080",
            "serve --tls-key k",
            "serve --otlp nowhere",
            "token new --name a",
            "token new --name a --role admin",
            "token new --name a --role read --asks-burst 3",
            "proxy --admin 0",
            "proxy --profile paypal",
        ] {
            let is_refused = match parsed(&format!("semel {line}")) {
                Ok(root) => root.run().await.is_err_and(|error| error.is::<clap::Error>()),
                Err(_) => true,
            };
            assert!(is_refused, "{line}");
        }
    }

    #[test]
    fn a_store_may_be_named_before_or_after_the_command() {
        for line in ["semel --store file:a stats", "semel stats --store file:a"] {
            let root = parsed(line).expect("is fine");
            assert!(matches!(root.command, Command::Stats(_)), "{line} counts");
            assert_eq!(root.store.address().expect("is fine").to_string(), "file:a");
        }
    }
}
