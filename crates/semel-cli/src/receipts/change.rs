//! One event of a pipeline: shown, noted as processed, or released.

use anyhow::{Result, bail};
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::{Outcome, OutcomeKind, RecordedOnce, Resolution, Resolved, Semel};
use semel_ops::store_url::{Address, Opened};
use semel_stream::{EventRecord, Pipeline};
use serde_json::json;

use crate::keys::{self, Bytes, Which};
use crate::opening;
use crate::terminal::question::{Consent, ask};
use crate::terminal::{moment, out, text};
use semel_ops::lookup::walk;

/// The kind of a receipt that nobody's run stands behind.
const BY_HAND: &str = "recorded";

/// Which event of which pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Of {
    pub(crate) store: Address,
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: String,
    pub(crate) event: String,
}

/// What is to be shown.
#[derive(Debug)]
pub(crate) struct ShowReceipt {
    pub(crate) of: Of,
    pub(crate) bytes: Bytes,
    pub(crate) json: bool,
}

/// What is to be changed.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) of: Of,
    pub(crate) reason: Option<String>,
    pub(crate) consent: Consent,
}

/// An event's pipeline, on a store that is there.
struct Found {
    store: Opened,
    pipeline: Pipeline,
    record: Option<Record>,
    now: Timestamp,
}

impl Of {
    async fn find(&self) -> Result<Found> {
        let store = opening::open_existing(&self.store).await?;
        let semel = Semel::builder_shared(store.store()).build()?;
        let pipeline = Pipeline::builder(&semel, &self.pipeline).scope(&self.scope).build()?;
        let record = semel.get(&pipeline.receipt_key(&self.event)?).await?;
        let now = walk::now(&*store).await?;
        Ok(Found { store, pipeline, record, now })
    }

    fn name(&self) -> String {
        format!("event {} of {}", text::shown(&self.event), text::shown(&self.pipeline))
    }

    fn unknown(&self) -> anyhow::Error {
        anyhow::anyhow!(
            "{} has no record of {}: nobody has processed it, or its retention is over. Keys must be exact (one \
             that was text in JSON has its quotes: '\"order-7\"'); `semel receipts {0}` shows what there is",
            text::shown(&self.pipeline),
            text::shown(&self.event),
        )
    }
}

/// Shows the whole life of an event.
pub(crate) async fn show(plan: &ShowReceipt) -> Result<()> {
    let Found { store, pipeline, record, .. } = plan.of.find().await?;
    if record.is_none() {
        return Err(plan.of.unknown());
    }
    let key = pipeline.receipt_key(&plan.of.event)?;
    // A folder serves one at a time.
    drop((store, pipeline));
    let ask = keys::Show {
        store: plan.of.store.clone(),
        which: Which::Key(key),
        bytes: plan.bytes,
        json: plan.json,
    };
    keys::show(&ask).await
}

/// Notes an event as processed.
pub(crate) async fn record(plan: &Changed) -> Result<()> {
    let Found { store, pipeline, record, now } = plan.of.find().await?;
    let name = plan.of.name();
    let standing =
        record.as_ref().map_or_else(|| "Nobody has processed it.".to_owned(), |record| standing(record, now));
    if let Some(State::Done(_)) = record.as_ref().map(|record| &record.state) {
        return out::line(&format!("{name} has a receipt already, and nothing was changed. {standing}"));
    }
    let what = format!(
        "{name}: {standing}\nIt becomes processed for good, without being processed now: whoever delivers it again is told that it \
         is a\nduplicate, and its offset moves on. That cannot be undone."
    );
    ask(plan.consent, &what, "Note it as processed?")?;
    let outcome = Outcome::new(OutcomeKind::from_word(BY_HAND), *b"")
        .details(&json!({ "by": "semel receipts record" }));
    let held = matches!(record.as_ref().map(|record| &record.state), Some(State::Held(_)));
    if held {
        let key = pipeline.receipt_key(&plan.of.event)?;
        if pipeline.semel().resolve(&key, Resolution::Done(outcome)).await? == Resolved::NotHeld {
            bail!("it changed meanwhile, and nothing was done. Look again with `semel receipts show`");
        }
    } else {
        recorded(pipeline.record([(&plan.of.event, outcome)]).await?)?;
    }
    drop(store);
    out::line(&format!("Noted: {name} counts as processed."))
}

fn recorded(answers: Vec<RecordedOnce>) -> Result<()> {
    match answers.into_iter().next() {
        Some(RecordedOnce::Recorded(_) | RecordedOnce::Replay(_)) => Ok(()),
        Some(RecordedOnce::Busy(busy)) => bail!(
            "nothing was changed: {} is processing it. Wait for that one, or stop it and `semel receipts release` the event",
            text::shown(busy.owner())
        ),
        Some(RecordedOnce::Held(_) | RecordedOnce::Mismatch(_)) | None => {
            bail!("it changed meanwhile, and nothing was done. Look again with `semel receipts show`")
        }
    }
}

fn standing(record: &Record, now: Timestamp) -> String {
    let event = EventRecord::read(record);
    let since = moment::relative(event.since, now);
    let why = event.who_or_why.map_or_else(String::new, |why| format!(": {}", text::shown(&why)));
    format!("It is {} since {since}, attempt {}{why}.", event.state.as_str(), event.attempts)
}

/// Has a held event processed at its next delivery.
pub(crate) async fn release(plan: &Changed) -> Result<()> {
    let Found { store, pipeline, record, .. } = plan.of.find().await?;
    if record.is_none() {
        return Err(plan.of.unknown());
    }
    let key = pipeline.receipt_key(&plan.of.event)?;
    drop((store, pipeline));
    keys::release(&keys::Release {
        store: plan.of.store.clone(),
        which: Which::Key(key),
        reason: plan.reason.clone().unwrap_or_default(),
        consent: plan.consent,
    })
    .await
}
