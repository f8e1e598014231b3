//! What came of the records of an import.

use semel_ops::store_url::Address;
use serde_json::{Value, json};

use super::adopt::IfRunning;
use crate::terminal::number::grouped;
use crate::terminal::table::{Cell, Column, Table};

/// What came of the records.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Written now.
    pub(super) imported: u64,
    /// Written by an earlier try.
    pub(super) already_there: u64,
    /// Left as they are: another record is under the key.
    pub(super) other_there: u64,
    /// Not written: their time is over.
    pub(super) past: u64,
    /// Running in the export, and held or released now.
    pub(super) were_running: u64,
    /// The greatest version in the export: no fence that was handed out is greater.
    pub(super) version_there: u64,
    /// The greatest version that this store has given.
    pub(super) version_here: u64,
}

impl Report {
    /// For scripts.
    pub(super) fn json(&self) -> Value {
        json!({
            "imported": self.imported,
            "already_there": self.already_there,
            "other_there": self.other_there,
            "past_retention": self.past,
            "were_running": self.were_running,
            "fences_start_anew": self.fences_start_anew(),
        })
    }

    /// For people.
    pub(super) fn lines(&self, if_running: IfRunning) -> Vec<String> {
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
        table.lines(None)
    }

    /// Whoever compares fences must be told.
    pub(super) fn warning(&self, store: &Address) -> Option<String> {
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
