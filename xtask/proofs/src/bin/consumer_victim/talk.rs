//! What it says about its store before it goes on, and what it is told to do about it.
//!
//! It says `offset N`, `floor N` and `left N` where there is one, `record KEY STATE ATTEMPT` for each event that has one,
//! `row KEY ATTEMPT` for each effect in the database, and `looked`. It hears `done KEY` and `release KEY` of what is held,
//! `left` to ask the broker again, and at last `go` or `end`.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::sync::Arc;

use semel::Outcome;
use semel::machine::settle::{Resolution, Resolved};
use semel_stream::Pipeline;

use crate::Fallible;
use crate::choice::{Handler, Life};
use crate::effects;
use crate::origin::Origin;
use crate::steps::Steps;

/// Tells and hears; `None` if that was all.
pub(crate) async fn told(
    life: &Life,
    pipeline: &Pipeline,
    origin: &Origin<'_>,
) -> Fallible<Option<Arc<Steps>>> {
    let mut receipts = tell(life, pipeline, origin).await?;
    for words in std::io::stdin().lock().lines() {
        let words = words?;
        match words.split_once(' ') {
            Some(("done", key)) => {
                resolve(pipeline, key, Resolution::Done(Outcome::success("looked"))).await?;
                receipts.insert(key.into());
            }
            Some(("release", key)) => {
                resolve(pipeline, key, Resolution::Release { reason: "nothing happened".into() }).await?;
            }
            None if words == "left" => {
                println!("left {}", origin.left().await?.unwrap_or_default());
                std::io::stdout().flush()?;
            }
            None if words == "go" => return Ok(Some(Arc::new(Steps::new(life.fate, life.events, receipts)))),
            None if words == "end" => return Ok(None),
            _ => return Err(format!("it was told `{words}`").into()),
        }
    }
    Err("nobody said what to do".into())
}

async fn resolve(pipeline: &Pipeline, key: &str, resolution: Resolution) -> Fallible<()> {
    let resolved = pipeline.semel().resolve(&pipeline.receipt_key(key)?, resolution).await?;
    if resolved == Resolved::Resolved { Ok(()) } else { Err(format!("{key} is not held").into()) }
}

/// Says what is there; hands back which events are done.
async fn tell(life: &Life, pipeline: &Pipeline, origin: &Origin<'_>) -> Fallible<BTreeSet<Box<str>>> {
    let mut out = Vec::new();
    // Offsets before receipts: what is done in between can only be more.
    if let Some(position) = pipeline.offset(origin.stream()).await?.and_then(|offset| offset.position) {
        writeln!(out, "offset {position}")?;
    }
    if let Some(floor) = origin.floor().await? {
        writeln!(out, "floor {floor}")?;
    }
    let names: Vec<_> = (0..life.events).map(|number| number.to_string()).collect();
    let keys: semel::Result<Vec<_>> = names.iter().map(|name| pipeline.receipt_key(name)).collect();
    let mut done = BTreeSet::new();
    for (name, record) in names.iter().zip(pipeline.semel().get_all(&keys?).await?) {
        let Some(record) = record? else { continue };
        writeln!(out, "record {name} {} {}", record.state.kind().as_str(), record.attempt)?;
        if record.outcome().is_some() {
            done.insert(name.as_str().into());
        }
    }
    if life.handler == Handler::Transaction {
        for (event, attempt) in effects::rows(life).await? {
            writeln!(out, "row {event} {attempt}")?;
        }
    }
    writeln!(out, "looked")?;
    let mut stdout = std::io::stdout();
    stdout.write_all(&out)?;
    stdout.flush()?;
    Ok(done)
}
