//! Release and resolve of every record that meets some conditions: shown first, then acted on one by one.

use anyhow::{Result, bail};
use semel_ops::lookup::Selection;
use semel_ops::operator::Many;
use semel_ops::store_url::Opened;

use super::list;
use crate::args::{at_least_one, refused};
use crate::operator::{Action, Actor};
use crate::terminal::{Bar, Consent, counted, grouped, out};

/// How many of the records are shown before the question.
const PREVIEW: usize = 10;

/// How many are acted on, and whether anything is.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ManyArgs {
    /// Act on so many records at most; all that match if not given
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Show what would be acted on, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl ManyArgs {
    /// One record needs neither option: a mistyped condition must not pass for one.
    pub(super) fn refuse_for_one(self) -> Result<(), clap::Error> {
        if self.limit.is_some() || self.dry_run {
            return Err(refused(
                "--limit and --dry-run are for many keys, given by conditions such as --state held",
            ));
        }
        Ok(())
    }

    /// Shows which records are meant, asks, and acts on each of them.
    pub(super) async fn run(
        self,
        store: &Opened,
        actor: Actor<'_>,
        selection: &Selection,
        action: &Action,
        consent: Consent,
    ) -> Result<()> {
        let limit = self.limit.map(|limit| at_least_one("--limit", limit)).transpose()?;
        let found = Preview::of(store, selection).await?;
        if found.matched == 0 {
            return out::line(&format!("No record matches ({selection}); nothing was changed."));
        }
        let most = limit.map_or(found.matched, |limit| found.matched.min(limit.get() as u64));
        let what = action.meaning();
        if self.dry_run {
            out::print(&found.text(selection))?;
            return out::line(&format!(
                "\nWith --dry-run nothing was changed. Without it: {what} {}.",
                counted(most, "record")
            ));
        }
        actor.must_act()?;
        let question = format!("{} {}?", action.verb(), counted(most, "record"));
        consent.ask(&format!("{}\n{}", found.text(selection), action.warning()), &question)?;
        let bar = Bar::of_records("acting", most);
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        let many =
            actor.act_on_all(selection, action, limit, |many| bar.reached(ended(many), ended(many))).await?;
        drop(bar);
        actor.close().await?;
        summary(&many)
    }
}

/// What the conditions select, before anything is done.
struct Preview {
    first: Vec<list::Row>,
    matched: u64,
}

impl Preview {
    async fn of(store: &Opened, selection: &Selection) -> Result<Self> {
        let mut walk = selection.clone().walk(&**store, None).await?;
        let (mut first, mut matched) = (Vec::new(), 0_u64);
        let bar = Bar::of_ids("looking");
        while let Some(page) = walk.next().await? {
            matched = matched.saturating_add(page.records.len() as u64);
            let room = PREVIEW.saturating_sub(first.len());
            first.extend(page.records.into_iter().take(room).map(|record| (record, page.now)));
            bar.walked(walk.after(), matched);
        }
        Ok(Self { first, matched })
    }

    fn text(&self, selection: &Selection) -> String {
        let mut lines = list::table(&self.first).lines(out::width());
        let more = self.matched.saturating_sub(self.first.len() as u64);
        if more > 0 {
            lines.push(format!("… and {} more", grouped(more)));
        }
        lines.push(format!("{} match: {selection}.", counted(self.matched, "record")));
        lines.join("\n") + "\n"
    }
}

/// How many records the action has ended for.
fn ended(many: &Many) -> u64 {
    [many.resolved, many.released, many.changed, many.not_held, many.failed, many.unknown]
        .into_iter()
        .fold(0, u64::saturating_add)
}

/// What became of them; an error unless each was settled as asked.
fn summary(many: &Many) -> Result<()> {
    let acted = many.resolved.saturating_add(many.released);
    let mut parts = vec![format!("{} settled", grouped(acted))];
    let left_alone = many.changed.saturating_add(many.not_held);
    for (count, what) in [
        (left_alone, "left alone: changed meanwhile"),
        (many.failed, "failed: nothing was changed"),
        (many.unknown, "not known: the store did not answer"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    let text = format!("{}: {}.", counted(many.matched, "record"), parts.join(", "));
    if many.is_whole() && many.first_error.is_none() {
        return out::line(&text);
    }
    match &many.first_error {
        Some(error) => bail!("{text}\nThe first error: {error}"),
        None => bail!("{text}\nRun the same command again to act on what still matches"),
    }
}
