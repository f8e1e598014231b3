//! `semel receipts requeue`: has dead letters processed again.

use anyhow::{Result, bail};
use semel::machine::waiting::WAITING_MAX;
use semel_ops::format::scope;
use semel_ops::lookup::walk;
use semel_ops::record_json::Content;
use semel_ops::record_json::dead_letter::RequeueView;
use semel_stream::{EventRecord, EventState, Pipeline, ReceiptFilter, ReceiptsAfter, Requeue, RequeueAsk};

use super::{Event, find, no_event, table};
use crate::args::{Scope, at_most, refused};
use crate::audit_arg::AuditArg;
use crate::keys::words;
use crate::operator::Actor;
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, Consent, counted, grouped, out, text};

/// How many of the events are shown before the question.
const PREVIEW: usize = 10;
/// How many are sent back in one write.
const BATCH: usize = 100;
/// What is in the audit log.
const REASON: &str = "requeued by hand";

#[derive(Debug, clap::Args)]
pub(super) struct RequeueArgs {
    /// The pipeline
    pipeline: String,
    /// The key of the event, as `semel receipts` shows it
    #[arg(required_unless_present = "all_dead", conflicts_with = "all_dead")]
    event: Option<String>,
    /// All dead letters of the pipeline; shows how many, and the first ten
    #[arg(long)]
    all_dead: bool,
    /// So many at most, with --all-dead; 1000 wait at once
    #[arg(long, value_name = "N", requires = "all_dead")]
    limit: Option<usize>,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = REASON)]
    reason: String,
    #[command(flatten)]
    audit: AuditArg,
    #[command(flatten)]
    consent: Consent,
}

impl RequeueArgs {
    pub(super) async fn run(self, store: &StoreArg) -> Result<()> {
        let limit = at_most("--limit", self.limit.unwrap_or(WAITING_MAX), WAITING_MAX)?.get();
        let (store, pipeline) = store.open_pipeline(&self.pipeline, self.scope.clone()).await?;
        let actor = Actor::on(&store, &self.audit)?;
        match &self.event {
            Some(name) => {
                let now = walk::now(&**store).await?;
                let event = find(&pipeline, name, now).await?;
                let event = event.ok_or_else(|| no_event(&self.pipeline, name))?;
                self.one(&pipeline, &actor, &event).await?;
            }
            None if self.all_dead => self.all(&pipeline, &actor, limit, walk::now(&**store).await?).await?,
            None => return Err(refused("which event? Give its key, or --all-dead").into()),
        }
        actor.close().await
    }

    async fn one(&self, pipeline: &Pipeline, actor: &Actor<'_>, event: &Event) -> Result<()> {
        let Event { event, found } = event;
        let name = format!("event {} of {}", text::shown(&event.event), text::shown(&self.pipeline));
        let answer = event.requeue_answer();
        if !matches!(answer, Requeue::Requeued { .. }) {
            bail!("{name}: {}", RequeueView::from(answer).message);
        }
        let letter = event.letter();
        let why =
            letter.and_then(|letter| letter.error).unwrap_or_else(|| "no reason was recorded".to_owned());
        let what = format!(
            "{name} was put aside: {}\nA consumer of the pipeline processes it again, out of order and with the payload that was kept. If the \
             first run had its\neffect after all, it happens twice.",
            text::shown(&why)
        );
        self.consent.ask(&what, "Requeue it?")?;
        let asks = [RequeueAsk { event: event.id(), requeues_before: Some(event.requeue) }];
        let answer = actor.requeue(pipeline, &asks, &self.reason).await?.into_iter().next();
        match answer {
            Some(Requeue::Requeued { number }) => out::line(&format!(
                "Requeued: {name} waits as requeue {number}.\n{} Its payload is kept for another {}.",
                self.who_takes_it_up(),
                words::left(&found.record, found.now),
            )),
            other => bail!("{name}: {}", RequeueView::from(other.unwrap_or(Requeue::Unknown)).message),
        }
    }

    async fn all(
        &self,
        pipeline: &Pipeline,
        actor: &Actor<'_>,
        limit: usize,
        now: semel::clock::Timestamp,
    ) -> Result<()> {
        let found = Dead::of(pipeline, limit).await?;
        let of = text::shown(&self.pipeline);
        if found.wanted.is_empty() {
            return out::line(&format!(
                "{of} has no dead letter to requeue.{} Nothing was changed.",
                found.rest()
            ));
        }
        let mut lines = table(found.preview(), now, Content::Base64).lines(out::width());
        let more = found.wanted.len().saturating_sub(PREVIEW) as u64;
        if more > 0 {
            lines.push(format!("… and {} more", grouped(more)));
        }
        let letters = counted(found.wanted.len() as u64, "dead letter");
        let what = format!(
            "{}\n{letters} of {of}.{}\nConsumers process each again, out of order. If a first run had its effect after all, it happens twice.",
            lines.join("\n"),
            found.rest()
        );
        self.consent.ask(&what, &format!("Requeue {letters}?"))?;
        let asks: Vec<_> = found
            .wanted
            .iter()
            .map(|event| RequeueAsk { event: event.id(), requeues_before: Some(event.requeue) })
            .collect();
        let mut answers = Vec::with_capacity(asks.len());
        for batch in asks.chunks(BATCH) {
            answers.extend(actor.requeue(pipeline, batch, &self.reason).await?);
        }
        self.summary(&answers)
    }

    /// What became of them; an error unless all were requeued.
    fn summary(&self, answers: &[Requeue]) -> Result<()> {
        let count = |is: fn(&Requeue) -> bool| answers.iter().filter(|answer| is(answer)).count() as u64;
        let requeued = count(|answer| matches!(answer, Requeue::Requeued { .. }));
        let full = count(|answer| *answer == Requeue::Full);
        let mut said =
            format!("Requeued {} of {}.", counted(requeued, "dead letter"), text::shown(&self.pipeline));
        if requeued > 0 {
            said.push('\n');
            said.push_str(&self.who_takes_it_up());
        }
        if requeued == answers.len() as u64 {
            return out::line(&said);
        }
        let changed = (answers.len() as u64).saturating_sub(requeued).saturating_sub(full);
        bail!(
            "{said}\n{full} did not fit: {WAITING_MAX} wait at once. {changed} changed meanwhile. Run the same command again once consumers have \
             taken some up"
        );
    }

    fn who_takes_it_up(&self) -> String {
        format!(
            "A running consumer of the pipeline takes it up within seconds; without one, the next that starts does: \
             semel consume --pipeline {} …",
            text::shown(&self.pipeline)
        )
    }
}

/// The dead letters of a pipeline.
#[derive(Default)]
struct Dead {
    wanted: Vec<EventRecord>,
    waiting: u64,
    not_kept: u64,
    over_limit: u64,
}

impl Dead {
    async fn of(pipeline: &Pipeline, limit: usize) -> Result<Self> {
        let filter = ReceiptFilter { states: vec![EventState::DeadLetter], event: None };
        let (mut dead, mut after) = (Self::default(), None);
        let bar = Bar::of_ids("looking");
        loop {
            let page = ReceiptsAfter { after, limit: walk::PAGE_RECORDS_MAX };
            let page = pipeline.receipts(&filter, page).await?;
            page.events.into_iter().for_each(|event| dead.add(event, limit));
            after = page.next;
            bar.walked(after, dead.wanted.len() as u64);
            if after.is_none() {
                return Ok(dead);
            }
        }
    }

    fn add(&mut self, mut event: EventRecord, limit: usize) {
        let count = match event.requeue_answer() {
            Requeue::Requeued { .. } if self.wanted.len() < limit => {
                // Of those that are not shown, only which they are: payloads may be large.
                if self.wanted.len() >= PREVIEW {
                    event.outcome = None;
                }
                return self.wanted.push(event);
            }
            Requeue::Requeued { .. } => &mut self.over_limit,
            Requeue::AlreadyWaiting { .. } => &mut self.waiting,
            Requeue::NotKept | Requeue::NotDead(_) | Requeue::Changed | Requeue::Full | Requeue::Unknown => {
                &mut self.not_kept
            }
        };
        *count = count.saturating_add(1);
    }

    fn preview(&self) -> &[EventRecord] {
        self.wanted.get(..PREVIEW).unwrap_or(&self.wanted)
    }

    /// What is left out, and why.
    fn rest(&self) -> String {
        let parts = [
            (self.over_limit, "more than the limit are left for later"),
            (self.waiting, "were requeued before, and wait for a consumer"),
            (self.not_kept, "cannot be requeued, because their payloads are not kept: send them anew"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, what)| format!(" {} {what}.", grouped(*count))).collect();
        parts.concat()
    }
}
