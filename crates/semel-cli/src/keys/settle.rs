//! Release and resolve, which ask first.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State};
use semel::{Outcome, OutcomeKind, Resolution};
use semel_ops::operator_actions::{Settled, release_in, resolve_in};
use semel_ops::store_url::Address;

use super::show::headline;
use super::which::{Found, Which};
use super::words;
use crate::opening;
use crate::terminal::question::{Consent, ask};
use crate::terminal::{out, span, text};

/// Which key is to be released.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) store: Address,
    pub(crate) which: Which,
    pub(crate) reason: String,
    pub(crate) consent: Consent,
}

/// Which held key is to be settled, and how.
#[derive(Debug)]
pub(crate) struct Resolve {
    pub(crate) store: Address,
    pub(crate) which: Which,
    pub(crate) how: How,
    pub(crate) consent: Consent,
}

/// How a held key is to be settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The effect landed: retries get what is in this file.
    Done { file: PathBuf, kind: OutcomeKind },
    /// It did not.
    Release { reason: String },
}

/// Has the next claim run, whatever the present run is up to.
pub(crate) async fn release(plan: &Release) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let found = plan.which.find(&*store).await?;
    let shown = described(&found);
    match &found.record.state {
        State::Running(running) => {
            ask(
                plan.consent,
                &format!("{shown}\n\n{}", what_release_means(running, found.now)),
                "Release it?",
            )?;
        }
        State::Held(_) => {
            ask(plan.consent, &format!("{shown}\n\n{HELD_RELEASE}"), "Release it?")?;
        }
        State::Released(_) => {
            return out::line(&format!("{shown}\n\nIt is released already: the next claim runs."));
        }
        State::Done(_) => bail!(
            "{shown}\nIt is done, and nothing was changed: an outcome that somebody was told of is never taken back.\n\
             It is forgotten when its retention ends, in {}",
            words::left(&found.record, found.now)
        ),
    }
    expected(release_in(&*store, &found.record, &plan.reason, None).await?)?;
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
        text::shown(&running.owner)
    )
}

/// Settles a held key.
pub(crate) async fn resolve(plan: &Resolve) -> Result<()> {
    // Before the store is asked: a file that cannot be read must not cost a look.
    let resolution = match &plan.how {
        How::Release { reason } => Resolution::Release { reason: reason.as_str().into() },
        How::Done { file, kind } => {
            let bytes = std::fs::read(file).with_context(|| {
                format!("cannot read the outcome from {}; check the path", file.display())
            })?;
            Resolution::Done(Outcome::new(kind.clone(), bytes))
        }
    };
    let store = opening::open_existing(&plan.store).await?;
    let found = plan.which.find(&*store).await?;
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
    ask(plan.consent, &format!("{shown}\n\n{what}"), question)?;
    expected(resolve_in(&*store, &found.record, &resolution, None).await?)?;
    out::line(&format!("Resolved {}: {done}", name(&found.record)))
}

/// What became of it, if that was not what was wanted.
fn expected(settled: Settled) -> Result<()> {
    match settled {
        Settled::Released | Settled::Resolved => Ok(()),
        Settled::NotHeld | Settled::Changed => {
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
