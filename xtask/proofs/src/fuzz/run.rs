//! All of it: a server, so many requests, what they broke, and the control.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use test_http::blocking::Client;
use test_http::{Answer, Request, Role, Server, Token};
use xtask::run::{passed, started};

use super::document::{Document, Operation};
use super::request::{Callers, request};
use super::schema::check;
use super::value::Known;
use crate::dice::Dice;
use crate::progress::{Progress, Stopwatch};
use crate::release;

/// How many faults are told of.
const FAULTS_MAX: usize = 25;
/// How many requests before one without an answer are told of.
const LAST_MAX: usize = 3;

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Fuzzed {
    /// How many requests were sent.
    pub requests: usize,
    /// How often each status came, over all operations.
    pub statuses: BTreeMap<u16, usize>,
    /// How many of all operations answered with 200 at least once.
    pub operations: (usize, usize),
    /// The longest that one took, and which.
    pub slowest: (Duration, String),
    /// The control: what was found out about a document that lacks a status.
    pub caught: String,
}

impl fmt::Display for Fuzzed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, statuses, operations: (reached, all), slowest: (longest, which), caught } = self;
        let statuses: Vec<_> = statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        write!(
            f,
            "{requests} requests to {all} operations, all answered as documented ({}); {reached} of them answered with \
             success; of a document without one status it was found out that {caught}; the slowest took {} ms: {which}",
            statuses.join(", "),
            longest.as_millis()
        )
    }
}

/// Sends `count` requests to a server of its own, and fails with all that they broke.
pub fn fuzz(binary: &Path, count: usize, seed: u64, step: &dyn Fn()) -> Result<Fuzzed> {
    let tokens = [
        Token::new(Role::Work, &[]),
        Token::new(Role::Operate, &[]),
        Token::new(Role::Read, &[]),
        Token::new(Role::Work, &["acme"]),
        Token::new(Role::Operate, &["acme"]),
    ];
    let server = Server::start(binary, "memory:", &tokens)?;
    let document = Document::new(server.client().get("/openapi.json")?)?;
    let mut run = Run::new(&document, server.client(), &tokens, seed)?;
    for _ in 0..count {
        run.one();
        step();
        if run.is_over {
            break;
        }
    }
    run.end(server, &tokens)
}

struct Run<'a> {
    document: &'a Document,
    operations: Vec<Operation>,
    tokens: &'a [Token],
    unknown: Token,
    client: Client,
    dice: Dice,
    known: Known,
    fuzzed: Fuzzed,
    reached: BTreeMap<String, (Request, Answer)>,
    faults: BTreeMap<String, String>,
    /// The last that were answered.
    last: VecDeque<Request>,
    is_over: bool,
    seed: u64,
}

/// A request, for people.
fn told(ask: &Request) -> String {
    let start = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    format!(
        "{} {} {:?} {}",
        ask.method,
        start(&ask.target, 300),
        ask.headers.iter().map(|(name, value)| (name, String::from_utf8_lossy(value))).collect::<Vec<_>>(),
        start(&String::from_utf8_lossy(ask.body.as_deref().unwrap_or_default()), 400)
    )
}

impl<'a> Run<'a> {
    fn new(document: &'a Document, client: Client, tokens: &'a [Token], seed: u64) -> Result<Self> {
        Ok(Self {
            document,
            operations: document.operations()?,
            tokens,
            unknown: Token::new(Role::Operate, &[]),
            client,
            dice: Dice::new(seed),
            known: Known::default(),
            fuzzed: Fuzzed::default(),
            reached: BTreeMap::new(),
            last: VecDeque::new(),
            is_over: false,
            faults: document
                .dangling()
                .into_iter()
                .map(|name| (name.clone(), format!("{name} is nowhere in the document")))
                .collect(),
            seed,
        })
    }

    fn one(&mut self) {
        let Some(operation) = self.dice.pick(&self.operations).cloned() else { return };
        let callers = Callers { known: self.tokens, unknown: &self.unknown };
        let ask = request(self.document, &operation, &self.known, &callers, &mut self.dice);
        self.fuzzed.requests += 1;
        let watch = Stopwatch::start();
        let answer = self.client.ask(&ask);
        if watch.elapsed() > self.fuzzed.slowest.0 {
            self.fuzzed.slowest = (watch.elapsed(), told(&ask).chars().take(200).collect());
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // The server may be gone, and the ask before this one the reason.
                self.is_over = error.chain().any(|cause| cause.to_string().contains("refused"));
                let before: Vec<_> = self.last.iter().map(told).collect();
                let what =
                    format!("no answer: {}; before it:\n    {}", error.root_cause(), before.join("\n    "));
                return self.fault(&operation, 0, &ask, &what);
            }
        };
        if self.last.len() >= LAST_MAX {
            self.last.pop_front();
        }
        self.last.push_back(ask.clone());
        *self.fuzzed.statuses.entry(answer.status).or_default() += 1;
        if let Err(error) = judge(self.document, &operation, &ask, &answer) {
            return self.fault(&operation, answer.status, &ask, &format!("{error:#}"));
        }
        if answer.status == 200 && ask.method == operation.method {
            if let Ok(body) = answer.json() {
                self.known.learn(&body);
            }
            self.reached.insert(operation.name(), (ask, answer));
        }
    }

    fn fault(&mut self, operation: &Operation, status: u16, ask: &Request, what: &str) {
        // One of a kind is enough to mend it.
        let kind: String =
            format!("{} {status} {}", operation.name(), what.chars().take(60).collect::<String>());
        self.faults.entry(kind).or_insert_with(|| format!("{}: {what}\n    {}", operation.name(), told(ask)));
    }

    fn end(mut self, mut server: Server, tokens: &[Token]) -> Result<Fuzzed> {
        if !self.faults.is_empty() {
            let told: Vec<_> = self.faults.values().take(FAULTS_MAX).cloned().collect();
            let said = if server.is_running() {
                String::new()
            } else {
                format!("\nthe server ended, and said:\n{}", server.tail())
            };
            bail!(
                "{} kinds of faults in {} requests of seed {}:\n- {}{said}",
                self.faults.len(),
                self.fuzzed.requests,
                self.seed,
                told.join("\n- ")
            );
        }
        ensure!(server.is_running(), "the server is gone:\n{}", server.tail());
        let worker = tokens.first().context("there is a worker")?;
        let claim = json!({ "operation": "after", "name": format!("all-{}", self.seed) });
        let run = server.client().with_token(worker).call("/v1/claim", &claim)?;
        ensure!(
            run.get("decision") == Some(&Value::from("run")),
            "afterwards a claim was answered with {run}"
        );
        self.fuzzed.operations = (self.reached.len(), self.operations.len());
        self.fuzzed.caught = self.control()?;
        Ok(self.fuzzed)
    }

    /// A document without a status that comes must be caught.
    fn control(&self) -> Result<String> {
        let operation = self.operations.iter().find(|operation| operation.name() == "POST /v1/claim");
        let operation = operation.context("there is no claim in the document")?;
        let (ask, answer) = self.reached.get(&operation.name()).context("no claim was answered with 200")?;
        let poorer = self.document.without(operation, answer.status);
        let same = |other: &Operation| other.name() == operation.name();
        let operation = poorer.operations()?.into_iter().find(same).context("the claim is gone")?;
        match judge(&poorer, &operation, ask, answer) {
            Ok(()) => bail!("the control was not caught: a status that is not documented was let through"),
            Err(error) => Ok(format!("{error:#}").chars().take(80).collect()),
        }
    }
}

const PROBLEM: &str = "application/problem+json";

/// Nothing, or what is wrong with the answer.
pub(super) fn judge(
    document: &Document,
    operation: &Operation,
    ask: &Request,
    answer: &Answer,
) -> Result<()> {
    let status = answer.status;
    ensure!(status < 500, "{status}: {}", answer.text());
    if status >= 400 {
        is_problem(answer, &ask.method)?;
    }
    let is_its_own = ask.method == operation.method || (ask.method == "HEAD" && operation.method == "GET");
    if !is_its_own && !is_described(document, ask, operation)? {
        ensure!(status == 405, "another method is answered with {status}");
        return Ok(());
    }
    if !is_its_own {
        return Ok(());
    }
    let promised = operation
        .answers
        .get(&status.to_string())
        .with_context(|| format!("{status} is not documented: {}", answer.text()))?;
    if ask.method == "HEAD" {
        return Ok(());
    }
    let kind = answer.media_type();
    ensure!(promised.is_empty() || promised.contains_key(kind), "{status} as {kind:?} is not documented");
    let is_json = kind.ends_with("json");
    match promised.get(kind).filter(|_| is_json) {
        Some(schema) => {
            check(document, schema, &answer.json()?).with_context(|| format!("the body of a {status}"))
        }
        None => Ok(()),
    }
}

/// Whether the other method that was asked with has an operation too.
fn is_described(document: &Document, ask: &Request, operation: &Operation) -> Result<bool> {
    let others = document.operations()?;
    let get_too = |method: &str| if method == "HEAD" { "GET".to_owned() } else { method.to_owned() };
    Ok(others.iter().any(|other| other.path == operation.path && other.method == get_too(&ask.method)))
}

/// An error is told as problem+json, with all of its members.
fn is_problem(answer: &Answer, method: &str) -> Result<()> {
    ensure!(
        answer.media_type() == PROBLEM,
        "{} is told as {:?}: {}",
        answer.status,
        answer.media_type(),
        answer.text()
    );
    if method == "HEAD" {
        return Ok(());
    }
    let problem = answer.json()?;
    for name in ["type", "title", "detail", "code"] {
        ensure!(problem.get(name).is_some_and(Value::is_string), "a problem without `{name}`: {problem}");
    }
    ensure!(problem.get("status") == Some(&json!(answer.status)), "a {} says {problem}", answer.status);
    Ok(())
}

/// Send requests to the claim server that its own OpenAPI document describes, good and bad ones.
///
/// No answer may be a 5xx, have a status that is not documented, or a body that does not fit its schema; the server must live on. A
/// few hundred run with every change; this is for many. A seed makes the same requests again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many requests.
    #[arg(default_value_t = 5_000)]
    count: usize,
    /// What chance starts from; told at the start.
    #[arg(long)]
    seed: Option<u64>,
    /// Ask this binary's server, instead of that of the release one that is built first.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Sends them.
pub fn run(args: &Args) -> Result<()> {
    let binary = args.binary.clone().map_or_else(release::binary, Ok)?;
    let seed = args.seed.unwrap_or_else(rand::random);
    started(&format!("fuzz-api: {} requests, --seed {seed}", args.count));
    let bar = Progress::new("fuzz-api", args.count as u64);
    let done = fuzz(&binary, args.count, seed, &|| bar.step());
    drop(bar);
    passed(&done?.to_string());
    Ok(())
}
