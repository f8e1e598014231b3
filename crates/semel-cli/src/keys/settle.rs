//! Release and resolve, which ask first.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State};
use semel::{OperatorAnswer, Outcome, OutcomeKind, Resolution, Semel};
use semel_ops::store_url::Opened;

use super::selector::{Found, KeyArg};
use super::show::headline;
use super::words;
use crate::store_arg::StoreArg;
use crate::terminal::{Consent, out, span, text};

/// Why a key was released, unless somebody says.
pub(crate) const REASON: &str = "released by hand";

#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    key: KeyArg,
    /// Why, for whoever looks at the record next
    #[arg(long, value_name = "TEXT", default_value = REASON)]
    reason: String,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    key: KeyArg,
    /// The effect landed: every retry gets the bytes of this file
    #[arg(long, value_name = "FILE")]
    outcome_file: Option<PathBuf>,
    /// How the run ended: success, failure, or a word of your own
    #[arg(long, value_name = "WORD", default_value = "success", conflicts_with = "release")]
    kind: String,
    /// The effect did not land: the next claim runs
    #[arg(long)]
    release: bool,
    /// Why, for whoever looks at the record next
    #[arg(long, value_name = "TEXT", default_value = REASON, conflicts_with = "outcome_file")]
    reason: String,
    #[command(flatten)]
    consent: Consent,
}

impl ReleaseArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let selector = self.key.selector()?;
        let store = store.open_existing().await?;
        let found = selector.find(&*store).await?;
        release(&store, &found, &self.reason, self.consent).await
    }
}

/// Has the next claim run, whatever the present run is up to.
pub(crate) async fn release(store: &Opened, found: &Found, reason: &str, consent: Consent) -> Result<()> {
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
            "{shown}\nIt is done, and nothing was changed: an outcome that somebody was told of is never taken back.\n\
             It is forgotten when its retention ends, in {}",
            words::left(&found.record, found.now)
        ),
    }
    let semel = operator(store)?;
    let released = semel.release_shown(&found.record, reason, None).await;
    semel.close().await?;
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
        "{lease}\nReleasing stops nobody. If {} still runs, it goes on beside the next claim until it notices;\n\
         its complete is refused as lost, and its outcome is not stored. Stop that process first if you can.",
        text::shown(&running.grant.owner)
    )
}

impl ResolveArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let selector = self.key.selector()?;
        store.address()?;
        // Before the store is asked: a file that cannot be read must not cost a look.
        let resolution = match &self.outcome_file {
            None => Resolution::Release { reason: self.reason.into() },
            Some(file) => {
                let bytes = std::fs::read(file).with_context(|| {
                    format!("cannot read the outcome from {}; check the path", file.display())
                })?;
                Resolution::Done(Outcome::new(OutcomeKind::from_word(&self.kind), bytes))
            }
        };
        let store = store.open_existing().await?;
        let found = selector.find(&*store).await?;
        let shown = described(&found);
        if !matches!(found.record.state, State::Held(_)) {
            bail!("{shown}\nIt is not held, and nothing was changed: {}", instead(&found));
        }
        let (what, question, done) = match &resolution {
            Resolution::Release { .. } => (
                HELD_RELEASE.to_owned(),
                "Release it?",
                format!("the next claim runs as attempt {}.", found.record.attempt.saturating_add(1)),
            ),
            Resolution::Done(outcome) => {
                let (kind, size) = (outcome.kind().as_str().to_owned(), outcome.bytes().len());
                let what = format!(
                    "It becomes done for good: every retry gets this outcome ({kind}, {size} bytes). That cannot be undone."
                );
                (what, "Complete it?", "every retry gets this outcome from now on.".to_owned())
            }
        };
        self.consent.ask(&format!("{shown}\n\n{what}"), question)?;
        let semel = operator(&store)?;
        let resolved = semel.resolve_shown(&found.record, resolution, None).await;
        semel.close().await?;
        expected(resolved?)?;
        out::line(&format!("Resolved {}: {done}", name(&found.record)))
    }
}

/// The engine of an operator, who settles one record and sweeps none.
fn operator(store: &Opened) -> semel::Result<Semel> {
    Semel::builder_shared(store.store()).no_sweep().build()
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
        State::Running(_) => format!("somebody holds a permit. `semel keys release {id}` takes it away"),
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
