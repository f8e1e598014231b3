//! Lines that are whole, by their number.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail};
use semel::record::Record;

use super::line::{self, End, Header};

/// The longest line that is read: what is longer is no export.
const LINE_BYTES_MAX: u64 = 512 << 20;

/// Whether an export that was cut will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// The last line must be there.
    Whole,
    /// What there is, is taken.
    Partial,
}

/// Reads the records of an export.
pub(super) struct Reading<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
    records: u64,
    completeness: Completeness,
    at_end: bool,
}

impl<R: BufRead> Reading<R> {
    /// Reads the header.
    pub(super) fn begin(input: R, completeness: Completeness) -> Result<Self> {
        let mut reading =
            Self { input, line: Vec::new(), number: 0, bytes: 0, records: 0, completeness, at_end: false };
        if !reading.next_line()? {
            bail!("there is nothing to import: not even a first line");
        }
        Header::parse(&reading.line)?;
        Ok(reading)
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many records were read.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// The next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        if self.at_end {
            return Ok(None);
        }
        if !self.next_line()? {
            self.at_end = true;
            return match self.completeness {
                Completeness::Partial => Ok(None),
                Completeness::Whole => bail!(
                    "the export ends after line {} without its last line: it was cut. Go on with it by `semel export --to FILE \
                     --resume`, or take what there is with --partial",
                    self.number
                ),
            };
        }
        if let Some(end) = End::parse(&self.line) {
            self.at_end = true;
            return self.end(end).map(|()| None);
        }
        match line::read(&self.line) {
            Ok(record) => {
                self.records = self.records.saturating_add(1);
                Ok(Some(record))
            }
            Err(_) if self.is_torn()? => bail!(
                "line {} ends early: the export was cut there. Go on with it by `semel export --to FILE --resume`",
                self.number
            ),
            Err(what) => bail!(
                "line {} is damaged: {what}. Export again; or mend the line and take its `crc` out, if you know what it must be",
                self.number
            ),
        }
    }

    fn end(&mut self, end: End) -> Result<()> {
        if end.records() != self.records {
            let (said, read) = (end.records(), self.records);
            bail!(
                "the last line (line {}) says {said} records, and {read} were read: lines are missing",
                self.number
            );
        }
        if self.next_line()? {
            bail!("line {} comes after the end of the export: two exports were joined", self.number);
        }
        Ok(())
    }

    /// Whether the line that was read is the last, and without its line break.
    fn is_torn(&mut self) -> Result<bool> {
        Ok(self.line.last() != Some(&b'}') && self.input.fill_buf()?.is_empty())
    }

    fn next_line(&mut self) -> Result<bool> {
        self.line.clear();
        let number = self.number.saturating_add(1);
        let mut limited = Read::take(&mut self.input, LINE_BYTES_MAX);
        let read = limited
            .read_until(b'\n', &mut self.line)
            .with_context(|| format!("cannot read line {number}"))?;
        if read as u64 == LINE_BYTES_MAX {
            bail!("line {number} is longer than {LINE_BYTES_MAX} bytes: this is no export");
        }
        self.bytes = self.bytes.saturating_add(read as u64);
        if read == 0 {
            return Ok(false);
        }
        self.number = number;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(true)
    }
}
