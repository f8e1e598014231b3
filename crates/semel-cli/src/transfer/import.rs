//! From lines to a store: what a record becomes there, and what came of them all.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use semel::clock::Timestamp;
use semel::record::{Draft, Held, HoldReason, Record, Released, State, Version};
use semel::store::{Store, Swap, SwapReply};
use semel_ops::lookup::walk;
use semel_ops::store_url::Address;
use serde_json::{Value, json};

use super::reading::{Completeness, Reading};
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, Cell, Column, Table, counted, grouped, out};

/// How many records are written at once.
const BATCH_RECORDS: usize = 256;
/// About how many bytes of records are written at once.
const BATCH_BYTES: usize = 4 << 20;

/// How often a record is tried that something past its time was in the way of.
const TRIES_MAX: usize = 16;
/// Why a record that was running is held or released.
const IMPORTED: &str = "imported";
/// The moment that a store stamps itself.
const NOW: Timestamp = Timestamp::from_micros(0);
/// The fence of a run that release 0.1 settled without keeping it; a store stamps it, too.
const UNKNOWN_FENCE: Version = Version::new(0);

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Read from this file instead of standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What becomes of records that were running when they were exported
    #[arg(long, value_name = "WHAT", default_value = "hold")]
    running: IfRunning,
    /// Take what there is of an export that was cut
    #[arg(long)]
    partial: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What becomes of a record that was running: its permit was granted by another store, under fences that mean nothing here.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IfRunning {
    /// Nobody runs them before somebody decides
    Hold,
    /// The next claim runs them: only if you know that nothing runs any more
    Release,
}

impl ImportArgs {
    /// A file is read twice: first to see that every line is whole, so that a damaged one refuses the import before anything is
    /// written. Standard input cannot be: it is written up to the damaged line, and that is said.
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let address = store.address_of_store()?;
        let report = match self.from.as_ref().filter(|path| path.as_os_str() != "-") {
            Some(path) => {
                let open = || {
                    let shown = path.display();
                    File::open(path).with_context(|| format!("cannot read {shown}; check the path"))
                };
                let bytes = open()?.metadata()?.len();
                self.look_through(BufReader::new(open()?), bytes).context("nothing was imported")?;
                self.write_all(store, BufReader::new(open()?), bytes).await?
            }
            None => self.write_all(store, io::stdin().lock(), 0).await?,
        };
        if self.json {
            out::json(&report.json())?;
        } else {
            out::print(&(report.lines(self.running).join("\n") + "\n"))?;
        }
        if let Some(warning) = report.warning(&address) {
            eprintln!("warning: {warning}");
        }
        if report.unreadable > 0 {
            bail!(
                "{} not imported: {address} has a damaged record under the key. Restore or remove it, then run the same \
                 command again",
                counted(report.unreadable, "record")
            );
        }
        Ok(())
    }

    fn completeness(&self) -> Completeness {
        if self.partial { Completeness::Partial } else { Completeness::Whole }
    }

    fn look_through(&self, input: impl BufRead, bytes: u64) -> Result<()> {
        let bar = Bar::of_bytes("checking", bytes);
        let mut reading = Reading::begin(input, self.completeness())?;
        while reading.next()?.is_some() {
            bar.reached(reading.bytes(), reading.records());
        }
        Ok(())
    }

    async fn write_all(&self, store: &StoreArg, input: impl BufRead, bytes: u64) -> Result<Report> {
        let mut reading = Reading::begin(input, self.completeness())?;
        let store = store.open().await?;
        let mut batch = Batch { now: walk::now(&*store).await?, swaps: Vec::new(), bytes: 0 };
        let mut report = Report::default();
        let bar = Bar::of_bytes("importing", bytes);
        loop {
            let record = reading.next();
            let is_last = !matches!(record, Ok(Some(_)));
            if let Ok(Some(record)) = &record {
                batch.add(record.clone(), self.running, &mut report);
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
        let bytes = record.heap_bytes();
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
            let answer = store.swap(swaps.clone().into()).await?;
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
        // Not of the record that is there: none can be written now.
        SwapReply::Refused(error) => {
            bail!("{error}; then run the same command again")
        }
        SwapReply::Damaged(error) => {
            eprintln!("warning: the record {} that is there cannot be read: {error}", swap.id());
            more(&mut report.unreadable);
        }
        SwapReply::Full => bail!(
            "the store is full and takes no new record; sweep it or give it more room, then run the same command again"
        ),
    }
    Ok(None)
}

/// The record as it is to be in this store; `None` if its time is over.
fn adopt(record: Record, if_running: IfRunning, now: Timestamp) -> Option<Swap> {
    let record = settled(record, if_running);
    if !was_running(&record) && !record.is_live(now) {
        return None;
    }
    let next = Draft::from_unstamped(record);
    let keep = next.keep(now);
    Some(Swap { expected: None, next, keep })
}

/// Whether an adopted record was running before.
fn was_running(record: &Record) -> bool {
    match &record.state {
        State::Released(released) => released.settled_at == NOW,
        State::Held(held) => held.held_at == NOW,
        State::Running(_) | State::Done(_) => false,
    }
}

fn settled(mut record: Record, if_running: IfRunning) -> Record {
    let State::Running(running) = &mut record.state else { return record };
    let (grant, steps) = (running.grant.clone(), std::mem::take(&mut running.steps));
    record.state = match if_running {
        IfRunning::Hold => {
            let reason = HoldReason::Unknown(IMPORTED.into());
            State::Held(Held { grant, held_at: NOW, reason, probed_at: None, steps })
        }
        IfRunning::Release => {
            State::Released(Released { grant, settled_at: NOW, reason: IMPORTED.into(), steps })
        }
    };
    record
}

/// Whether a record that is there is the one that an earlier try of the same import wrote.
fn is_the_same(there: &Record, imported: &Record) -> bool {
    let mut there = there.clone();
    // What the store stamps, and what later duplicates and mismatches change.
    there.version = imported.version;
    there.changed_at = imported.changed_at;
    there.duplicates = imported.duplicates;
    there.mismatches = imported.mismatches.clone();
    match (&mut there.state, &imported.state) {
        (State::Held(there), State::Held(imported)) => {
            if imported.held_at == NOW {
                there.held_at = NOW;
            }
            if imported.grant.fence == UNKNOWN_FENCE {
                there.grant.fence = UNKNOWN_FENCE;
            }
        }
        (State::Released(there), State::Released(imported)) => {
            if imported.settled_at == NOW {
                there.settled_at = NOW;
            }
            if imported.grant.fence == UNKNOWN_FENCE {
                there.grant.fence = UNKNOWN_FENCE;
            }
        }
        _ => {}
    }
    there == *imported
}

/// What came of the records.
#[derive(Debug, Default)]
struct Report {
    /// Written now.
    imported: u64,
    /// Written by an earlier try.
    already_there: u64,
    /// Left as they are: another record is under the key.
    other_there: u64,
    /// Not written: their time is over.
    past: u64,
    /// Not written: the record that is there cannot be read.
    unreadable: u64,
    /// Running in the export, and held or released now.
    were_running: u64,
    /// The greatest version in the export: no fence that was handed out is greater.
    version_there: u64,
    /// The greatest version that this store has given.
    version_here: u64,
}

impl Report {
    /// For scripts.
    fn json(&self) -> Value {
        json!({
            "imported": self.imported,
            "already_there": self.already_there,
            "other_there": self.other_there,
            "past_retention": self.past,
            "unreadable_there": self.unreadable,
            "were_running": self.were_running,
            "fences_start_anew": self.fences_start_anew(),
        })
    }

    /// For people.
    fn lines(&self, if_running: IfRunning) -> Vec<String> {
        let mut table = Table::new(vec![Column::whole("records"), Column::number(""), Column::whole("")]);
        let mut row = |word: &str, count: u64, note: &str| {
            table.row(vec![Cell::new(word), Cell::new(&grouped(count)), Cell::new(note)]);
        };
        let running = match if_running {
            IfRunning::Hold => "were running, and are held: semel keys list --state held",
            IfRunning::Release => "were running, and are released",
        };
        row("imported", self.imported, "");
        if self.were_running > 0 {
            row("  of them", self.were_running, running);
        }
        row("there already", self.already_there, "");
        row("left alone", self.other_there, "this store has a record of its own under the key");
        row("past", self.past, "their retention is over");
        if self.unreadable > 0 {
            row("unreadable", self.unreadable, "this store has a record under the key that cannot be read");
        }
        table.lines(None)
    }

    /// Whoever compares fences must be told.
    fn warning(&self, store: &Address) -> Option<String> {
        self.fences_start_anew().then(|| {
            format!(
                "fences start anew in {store}: they were handed out up to {} before, and begin near {} here.\n\
                 Whatever remembers the greatest fence it has seen would refuse new runs: reset it.",
                grouped(self.version_there),
                grouped(self.version_here)
            )
        })
    }

    fn fences_start_anew(&self) -> bool {
        self.version_here > 0 && self.version_here < self.version_there
    }
}

#[cfg(test)]
mod tests {
    use semel::record::{Done, Grant, Mismatches};
    use semel::{Key, Lapse, Outcome};

    use super::*;

    /// A done record with details of so many bytes, and next to no outcome.
    fn with_details(number: usize, bytes: usize) -> Record {
        let settled_at = Timestamp::from_micros(5);
        let outcome = Outcome::success("x").details(&json!("d".repeat(bytes)));
        Record {
            key: Key::new("charge", &number.to_string()).expect("is fine"),
            fingerprint: None,
            label: None,
            state: State::Done(Done { grant: Grant::forgotten(settled_at), settled_at, outcome }),
            attempt: 1,
            attempts_forgiven: 0,
            past_attempts: Vec::new(),
            lapse: Lapse::Rerun,
            retention: semel::RETENTION_DEFAULT,
            first_seen_at: settled_at,
            changed_at: settled_at,
            first_event: None,
            mismatches: Mismatches::default(),
            duplicates: semel::record::Duplicates::default(),
            version: Version::new(1),
        }
    }

    #[test]
    fn a_batch_is_full_by_all_that_is_in_its_records() {
        let mut batch = Batch { now: Timestamp::from_micros(6), swaps: Vec::new(), bytes: 0 };
        let mut report = Report::default();
        for number in 0..4 {
            assert!(!batch.is_full(), "{number} records of 1 MiB are no full batch");
            batch.add(with_details(number, 1 << 20), IfRunning::Hold, &mut report);
        }
        assert!(batch.is_full(), "4 MiB of details fill a batch");
        assert_eq!(batch.swaps.len(), 4);
    }
}
