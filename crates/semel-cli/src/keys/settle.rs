//! Release and resolve, which ask first.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State};
use semel::{OperatorAnswer, Outcome, OutcomeKind, Resolution};
use semel_http::HttpRecord;
use semel_ops::format::response::ResponseShown;
use semel_ops::operator::{Settlement, SuppliedResponse};

use super::many::ManyArgs;
use super::selector::{Found, KeysArg, Target};
use super::show::headline;
use super::words;
use crate::audit_arg::AuditArg;
use crate::operator::{Action, Actor};
use crate::store_arg::StoreArg;
use crate::terminal::{Consent, out, span, text};

/// Why a key was released, if no reason is given.
pub(crate) const REASON: &str = "released by hand";

#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    keys: KeysArg,
    /// Why, for the next person who reads the record
    #[arg(long, value_name = "TEXT", default_value = REASON)]
    reason: String,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    audit: AuditArg,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    keys: KeysArg,
    /// For a key of an HTTP request: the effect landed, and every retry gets a response with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<u16>,
    /// A header of that response, such as 'Location: /charges/7'; may be given several times
    #[arg(long, value_name = "NAME: VALUE", requires = "status", value_parser = SuppliedResponse::header_line)]
    header: Vec<(String, String)>,
    /// The body of that response; `-` for standard input. A file named *.json is application/json unless --header says
    /// otherwise; any other body needs a Content-Type. Without it, the body is empty
    #[arg(long, value_name = "FILE", requires = "status")]
    body_file: Option<PathBuf>,
    /// For any other key: the effect landed, and every retry gets the bytes of this file
    #[arg(long, value_name = "FILE")]
    outcome_file: Option<PathBuf>,
    /// How the run ended: success, failure, or a word of your own
    #[arg(long, value_name = "WORD", default_value = "success", conflicts_with_all = ["release", "status"])]
    kind: String,
    /// The effect did not land: the next claim runs
    #[arg(long)]
    release: bool,
    /// Why, for the next person who reads the record
    #[arg(long, value_name = "TEXT", default_value = REASON, conflicts_with_all = ["outcome_file", "status"])]
    reason: String,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    audit: AuditArg,
    #[command(flatten)]
    consent: Consent,
}

impl ReleaseArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let target = self.keys.target()?;
        let store = store.open_existing().await?;
        let actor = Actor::on(&store, &self.audit)?;
        match target {
            Target::One(selector) => {
                self.many.refuse_for_one()?;
                let found = selector.find(&**store).await?;
                release(actor, &found, &self.reason, self.consent).await
            }
            Target::Many(selection) => {
                let action = Action::Release { reason: self.reason };
                self.many.run(&store, actor, &selection, &action, self.consent).await
            }
        }
    }
}

/// Has the next claim run, whatever the present run is up to.
pub(crate) async fn release(actor: Actor<'_>, found: &Found, reason: &str, consent: Consent) -> Result<()> {
    actor.must_act()?;
    let shown = described(found);
    match &found.record.state {
        State::Running(running) => {
            let what = what_release_means(running, found.now);
            consent.ask(&format!("{shown}\n\n{what}"), "Release it?")?;
        }
        State::Held(_) => consent.ask(&format!("{shown}\n\n{HELD_RELEASE}"), "Release it?")?,
        State::Released(_) => {
            return out::line(&format!("{shown}\n\nIt is released already: the next claim runs."));
        }
        State::Done(_) => bail!(
            "{shown}\nIt is done, and nothing was changed: a stored outcome is never taken back.\n\
             It is forgotten when its retention ends, in {}",
            words::left(&found.record, found.now)
        ),
    }
    let released = actor.act(&found.record, &Action::Release { reason: reason.to_owned() }, None).await;
    actor.close().await?;
    expected(released?)?;
    let next = found.record.attempt.saturating_add(1);
    out::line(&format!("Released {}: the next claim runs as attempt {next}.", name(&found.record)))
}

const HELD_RELEASE: &str = "The next claim runs it again. If its effect landed after all, it happens twice.";

fn what_release_means(running: &Running, now: Timestamp) -> String {
    let renewed = span::shown(now.since(running.leased_at));
    let lease = if running.lease_is_good(now) {
        format!("Its lease is good: it was renewed {renewed} ago, so the run is probably still going on.")
    } else {
        format!("Its lease has lapsed: it was last renewed {renewed} ago.")
    };
    format!(
        "{lease}\nReleasing does not stop the worker. If {} still runs, it goes on beside the next claim until it notices;\n\
         its complete is refused as lost, and its outcome is not stored. Stop that process first if you can.",
        text::shown(&running.grant.owner)
    )
}

impl ResolveArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let settlement = self.settlement()?;
        let (many, consent) = (self.many, self.consent);
        let (target, audit) = (self.keys.target()?, self.audit);
        store.address()?;
        let store = store.open_existing().await?;
        let actor = Actor::on(&store, &audit)?;
        match target {
            Target::One(selector) => {
                many.refuse_for_one()?;
                resolve(actor, &selector.find(&**store).await?, settlement, consent).await
            }
            Target::Many(selection) => {
                many.run(&store, actor, &selection, &Action::Resolve(settlement), consent).await
            }
        }
    }
}

/// Settles a held record.
async fn resolve(actor: Actor<'_>, found: &Found, settlement: Settlement, consent: Consent) -> Result<()> {
    let shown = described(found);
    if !matches!(found.record.state, State::Held(_)) {
        bail!("{shown}\nIt is not held, and nothing was changed: {}", instead(found));
    }
    actor.must_act()?;
    let resolution = settlement.resolution(&found.record).map_err(|error| hinted(&found.record, error))?;
    let (what, question, done) = match (&settlement, &resolution) {
        (_, Resolution::Release { .. }) => (
            HELD_RELEASE.to_owned(),
            "Release it?",
            format!("the next claim runs as attempt {}.", found.record.attempt.saturating_add(1)),
        ),
        (Settlement::Response(response), Resolution::Done(_)) => {
            let response = ResponseShown::whole(&response.reply()?);
            let what = format!(
                "It becomes done for good: every retry gets exactly this response. That cannot be undone.\n\n{}",
                lines_shown(&response.text())
            );
            let done = format!("every retry gets {} from now on.", response.status_line());
            (what, "Complete it?", done)
        }
        (_, Resolution::Done(outcome)) => {
            let (kind, size) = (outcome.kind().as_str().to_owned(), outcome.bytes().len());
            let what = format!(
                "It becomes done for good: every retry gets this outcome ({kind}, {size} bytes). That cannot be undone."
            );
            (what, "Complete it?", "every retry gets this outcome from now on.".to_owned())
        }
    };
    consent.ask(&format!("{shown}\n\n{what}"), question)?;
    let version = Some(found.record.version.get());
    let resolved = actor.act(&found.record, &Action::Resolve(settlement), version).await;
    actor.close().await?;
    expected(resolved?)?;
    out::line(&format!("Resolved {}: {done}", name(&found.record)))
}

impl ResolveArgs {
    /// What the arguments settle a record with, read before the store is opened: a file that cannot be read costs nothing.
    fn settlement(&self) -> Result<Settlement> {
        if let Some(status) = self.status {
            let body = self.body_file.as_deref().map(body).transpose()?.unwrap_or_default();
            let mut response = SuppliedResponse { status, headers: self.header.clone(), body: body.into() };
            let is_json = |file: &PathBuf| file.extension().is_some_and(|end| end == "json");
            if self.body_file.as_ref().is_some_and(is_json) && !response.has_header("content-type") {
                response.headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            response.reply()?;
            return Ok(Settlement::Response(response));
        }
        let Some(file) = &self.outcome_file else {
            return Ok(Settlement::Release { reason: self.reason.as_str().into() });
        };
        let bytes = std::fs::read(file)
            .with_context(|| format!("cannot read the outcome from {}; check the path", file.display()))?;
        Ok(Settlement::Outcome(Outcome::new(OutcomeKind::from_word(&self.kind), bytes)))
    }
}

/// The bytes of a file, or of standard input for `-`.
fn body(file: &Path) -> Result<Vec<u8>> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.with_context(|| format!("cannot read the body from {}; check the path", file.display()))
}

/// Why a record cannot be settled so, with the options that settle it.
fn hinted(record: &Record, error: semel::Error) -> anyhow::Error {
    let options = if HttpRecord::of(record).is_some() {
        "--status 201 --header 'Location: /charges/7' --body-file FILE"
    } else {
        "--outcome-file FILE"
    };
    anyhow::Error::new(error)
        .context(format!("nothing was changed; settle this key with {options}, or --release"))
}

/// Lines that the response of a stranger may have, made safe to show.
pub(super) fn lines_shown(lines: &str) -> String {
    lines.lines().map(text::shown).collect::<Vec<_>>().join("\n")
}

/// What became of it, if that was not what was wanted.
fn expected(answer: OperatorAnswer) -> Result<()> {
    match answer {
        OperatorAnswer::Released | OperatorAnswer::Resolved => Ok(()),
        OperatorAnswer::NotHeld | OperatorAnswer::Changed => {
            bail!("it changed meanwhile, and nothing was done. Look again with `semel keys show`")
        }
    }
}

fn instead(found: &Found) -> String {
    let id = words::short(&found.record);
    match &found.record.state {
        State::Running(_) => format!("a caller holds a permit. `semel keys release {id}` takes it away"),
        State::Done(_) => "it has an outcome already, which never changes".to_owned(),
        State::Released(_) => "the next claim runs it".to_owned(),
        State::Held(_) => "look again".to_owned(),
    }
}

fn described(found: &Found) -> String {
    format!("{}\n{}", name(&found.record), headline(&found.record, found.now))
}

fn name(record: &Record) -> String {
    format!("{} ({})", text::shown(&words::key(record)), words::short(record))
}
