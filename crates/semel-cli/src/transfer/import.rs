//! From lines to a store.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Store, Swap, SwapReply};
use semel_ops::store_url::Address;

use super::adopt::{IfRunning, adopt, is_the_same, was_running};
use super::reading::{Completeness, Reading};
use super::report::Report;
use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::out;
use semel_ops::lookup::walk;

/// How many records are written at once.
const BATCH_RECORDS: usize = 256;
/// About how many bytes of outcomes and steps are written at once.
const BATCH_BYTES: usize = 4 << 20;

/// How often a record is tried that something past its time was in the way of.
const TRIES_MAX: usize = 16;

/// What is to be imported, and where to.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) store: Address,
    /// Standard input if there is none.
    pub(crate) from: Option<PathBuf>,
    pub(crate) if_running: IfRunning,
    pub(crate) completeness: Completeness,
    pub(crate) json: bool,
}

/// A file is read twice: first to see that every line is whole, so that a damaged one refuses the import before anything is
/// written. Standard input cannot be: it is written up to the damaged line, and that is said.
pub(crate) async fn import(plan: &Import) -> Result<()> {
    let report = match &plan.from {
        Some(path) => {
            let open = || {
                let shown = path.display();
                File::open(path).with_context(|| format!("cannot read {shown}; check the path"))
            };
            let bytes = open()?.metadata()?.len();
            look_through(BufReader::new(open()?), bytes, plan.completeness)
                .context("nothing was imported")?;
            write_all(plan, BufReader::new(open()?), bytes).await?
        }
        None => write_all(plan, io::stdin().lock(), 0).await?,
    };
    if plan.json {
        out::json(&report.json())?;
    } else {
        out::print(&(report.lines(plan.if_running).join("\n") + "\n"))?;
    }
    if let Some(warning) = report.warning(&plan.store) {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

fn look_through(input: impl BufRead, bytes: u64, completeness: Completeness) -> Result<()> {
    let bar = Bar::of_bytes("checking", bytes);
    let mut reading = Reading::begin(input, completeness)?;
    while reading.next()?.is_some() {
        bar.reached(reading.bytes(), reading.records());
    }
    Ok(())
}

async fn write_all(plan: &Import, input: impl BufRead, bytes: u64) -> Result<Report> {
    let mut reading = Reading::begin(input, plan.completeness)?;
    let store = opening::open(&plan.store).await?;
    let mut batch = Batch { now: walk::now(&*store).await?, swaps: Vec::new(), bytes: 0 };
    let mut report = Report::default();
    let bar = Bar::of_bytes("importing", bytes);
    loop {
        let record = reading.next();
        let is_last = !matches!(record, Ok(Some(_)));
        if let Ok(Some(record)) = &record {
            batch.add(record.clone(), plan.if_running, &mut report);
        }
        if is_last || batch.is_full() {
            let written = batch.write(&*store, &mut report).await;
            written.with_context(|| so_far(&report))?;
            bar.reached(reading.bytes(), reading.records());
        }
        if is_last {
            record.with_context(|| so_far(&report))?;
            return Ok(report);
        }
    }
}

/// What an import that stopped leaves behind.
fn so_far(report: &Report) -> String {
    format!(
        "the import stopped after {} records were written. They stay; the same command goes on where this one stopped",
        report.imported
    )
}

/// Records that are written together.
struct Batch {
    now: Timestamp,
    swaps: Vec<Swap>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, record: Record, if_running: IfRunning, report: &mut Report) {
        report.version_there = report.version_there.max(record.version.get());
        let steps = record.steps().iter().map(|step| step.value.len()).fold(0, usize::saturating_add);
        let bytes = record.outcome().map_or(0, |outcome| outcome.bytes().len()).saturating_add(steps);
        match adopt(record, if_running, self.now) {
            None => report.past = report.past.saturating_add(1),
            Some(swap) => {
                self.swaps.push(swap);
                self.bytes = self.bytes.saturating_add(bytes);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.swaps.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES
    }

    async fn write(&mut self, store: &dyn Store, report: &mut Report) -> Result<()> {
        let mut swaps = std::mem::take(&mut self.swaps);
        self.bytes = 0;
        // What is past its time may still be there: it is in the way once, and then replaced.
        for _ in 0..TRIES_MAX {
            if swaps.is_empty() {
                return Ok(());
            }
            let answer = store.swap(swaps.clone()).await?;
            self.now = answer.now;
            let mut again = Vec::new();
            for (swap, reply) in swaps.into_iter().zip(answer.value) {
                again.extend(heard(swap, reply, answer.now, report)?);
            }
            swaps = again;
        }
        bail!("other callers kept writing the same keys; stop them, then run the same command again")
    }
}

/// Counts what came of one record; what is to be tried again comes back.
fn heard(swap: Swap, reply: SwapReply, now: Timestamp, report: &mut Report) -> Result<Option<Swap>> {
    let more = |to: &mut u64| *to = to.saturating_add(1);
    match reply {
        SwapReply::Swapped(record) => {
            report.version_here = report.version_here.max(record.version.get());
            more(&mut report.imported);
            if was_running(swap.next.unstamped()) {
                more(&mut report.were_running);
            }
        }
        SwapReply::Stale(None) => return Ok(Some(Swap { expected: None, ..swap })),
        SwapReply::Stale(Some(there)) if !there.is_live(now) => {
            return Ok(Some(Swap { expected: Some(there.version), ..swap }));
        }
        SwapReply::Stale(Some(there)) => {
            report.version_here = report.version_here.max(there.version.get());
            let same = is_the_same(&there, swap.next.unstamped());
            more(if same { &mut report.already_there } else { &mut report.other_there });
        }
        SwapReply::Full => bail!(
            "the store is full and takes no new record; sweep it or give it more room, then run the same command again"
        ),
    }
    Ok(None)
}
