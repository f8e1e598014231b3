//! The lines that the victim speaks, one write each: what is asked, before it is asked; what was acknowledged, after it was.
//!
//! A line that the judge has read was true when it was written, and nothing that was acknowledged before it is unsaid.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use semel::record::{Record, State};

use super::payload;

/// Says that the folder was opened, and how long that took.
pub(super) fn opened(millis: u128) {
    line(format_args!("opened {millis}"));
}

/// Says that the folder, or an ask, was refused.
pub(super) fn refused(why: &dyn Display) {
    line(format_args!("refused {why}"));
}

/// Says that something happened that no crash explains.
pub(super) fn wrong(what: &dyn Display) {
    line(format_args!("wrong {what}"));
}

/// Tells a whole store, and at what moment of its clock.
pub(super) fn all(records: &[Arc<Record>], now_micros: u64) {
    let mut out = BufWriter::new(io::stdout().lock());
    for record in records {
        heard(&write_found(&mut out, record));
    }
    heard(&writeln!(out, "looked {now_micros} {}", records.len()).and_then(|()| out.flush()));
}

fn write_found(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let (name, attempt) = (record.key.name(), record.attempt);
    match &record.state {
        State::Running(running) => {
            let (fence, permit_id) = (running.grant.fence.get(), running.grant.permit_id.get());
            writeln!(out, "found {name} running {fence} {attempt} {permit_id:x}")
        }
        State::Done(done) => {
            let outcome = payload::read(&done.outcome);
            writeln!(out, "found {name} done {} {attempt} {outcome}", done.grant.fence.get())
        }
        State::Released(released) => writeln!(out, "found {name} released {} {attempt} -", released.reason),
        State::Held(held) => writeln!(out, "wrong {name} is held: {}", held.reason.as_str()),
    }
}

/// Writes one line in one piece.
pub(super) fn line(words: std::fmt::Arguments<'_>) {
    let text = format!("{words}\n");
    heard(&io::stdout().lock().write_all(text.as_bytes()));
}

/// Without anybody to hear it there is no reason to go on: a parent that was killed must leave no victim behind.
fn heard(written: &io::Result<()>) {
    if written.is_err() {
        std::process::exit(4);
    }
}
