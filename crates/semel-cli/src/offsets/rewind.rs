//! Moves the offset of one stream; asks first.

use std::cmp::Ordering;

use anyhow::{Result, bail};
use semel::Semel;
use semel_ops::store_url::Address;
use semel_stream::{Offset, Pipeline, Position};

use crate::opening;
use crate::terminal::question::{Consent, ask};
use crate::terminal::{out, text};

/// Which offset is to be moved, and where to.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) store: Address,
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: String,
    pub(crate) stream: String,
    /// The last position that counts as read; `None` to start over.
    pub(crate) to: Option<Position>,
    pub(crate) consent: Consent,
}

/// Moves it.
pub(crate) async fn move_one(plan: &Move) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let semel = Semel::builder_shared(store.store()).build()?;
    let pipeline = Pipeline::builder(&semel, &plan.pipeline).scope(&plan.scope).build()?;
    let name = format!("{} of {}", text::shown(&plan.stream), text::shown(&plan.pipeline));
    let found = pipeline.offset(&plan.stream).await?;
    if let Some(Offset { epoch: 0, .. }) = found {
        bail!(
            "{name} is shared by many readers, and nothing was changed: its broker keeps what was acknowledged. Have the \
             broker deliver again, or read it under another --pipeline name"
        );
    }
    let known = if found.is_none() { streams(&pipeline).await? } else { String::new() };
    let what = meaning(&name, found.as_ref(), plan.to, &known);
    ask(plan.consent, &what, "Move it?")?;
    let moved = pipeline.rewind(&plan.stream, plan.to).await?;
    out::line(&format!(
        "Moved {name} to {}: whoever reads it next, from epoch {} on, begins there.",
        place(moved.position),
        moved.epoch.saturating_add(1)
    ))
}

async fn streams(pipeline: &Pipeline) -> Result<String> {
    let names: Vec<_> = pipeline.offsets().await?.iter().map(|offset| text::shown(&offset.stream)).collect();
    Ok(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

/// What a move means, for whoever has to agree.
fn meaning(name: &str, found: Option<&Offset>, to: Option<Position>, known: &str) -> String {
    let Some(offset) = found else {
        return format!(
            "Nobody has begun to read {name}: is that what it is called? This pipeline has read: {known}.\n\
             Whoever begins starts behind {}.",
            place(to)
        );
    };
    let direction = match to.cmp(&offset.position) {
        Ordering::Less => {
            "What is behind it is read again. Events that have a receipt are not processed again; those whose retention is\n\
             over are."
        }
        Ordering::Greater => "What is between the two is skipped: nobody processes it.",
        Ordering::Equal => "That is where it is.",
    };
    format!(
        "{name}: from {} to {} (epoch {}).\n{direction}\n\
         Whoever reads it now is fenced: its next commit is refused, and it ends. Start it again afterwards.",
        place(offset.position),
        place(to),
        offset.epoch
    )
}

fn place(position: Option<Position>) -> String {
    position.map_or_else(|| "its start".to_owned(), |position| format!("position {position}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(from: Option<u128>, to: Option<u128>) -> String {
        let offset = Offset { position: from.map(Position::new), last_event: None, epoch: 3, lag: None };
        meaning("s of p", Some(&offset), to.map(Position::new), "")
    }

    #[test]
    fn going_back_reads_again_and_going_on_skips() {
        assert!(told(Some(9), None).contains("position 9 to its start"));
        assert!(told(Some(9), None).contains("read again") && told(Some(9), Some(3)).contains("read again"));
        assert!(told(Some(9), Some(12)).contains("skipped") && told(None, Some(0)).contains("skipped"));
        assert!(told(Some(9), Some(9)).contains("where it is"));
        for said in [told(Some(9), None), told(None, Some(1))] {
            assert!(said.contains("fenced"), "{said}");
        }
    }

    #[test]
    fn a_stream_that_nobody_reads_may_be_a_misspelt_one() {
        let said = meaning("s of p", None, None, "events.jsonl");
        assert!(said.contains("Nobody has begun") && said.contains("events.jsonl"), "{said}");
    }
}
