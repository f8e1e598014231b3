//! How far a walk has come; on stderr, and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use semel::RecordId;

use super::number::grouped;
use super::stopwatch::Stopwatch;

/// Into how many places the ids are divided to see how far a walk is.
const PLACES: u64 = 10_000;

/// What is over before that needs no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// A bar that appears when something takes long, and is gone when it is dropped, also because of an error.
pub(crate) struct Bar {
    bar: ProgressBar,
    started: Stopwatch,
}

impl Bar {
    /// For a walk through all ids: they are digests, so half-way through them is half-way through the records.
    pub(crate) fn of_ids(what: &'static str) -> Self {
        Self::new(ProgressBar::new(PLACES), what, "{msg} {wide_bar} {percent:>3}%  {prefix} records")
    }

    /// For so many bytes.
    pub(crate) fn of_bytes(what: &'static str, bytes: u64) -> Self {
        Self::new(ProgressBar::new(bytes), what, "{msg} {wide_bar} {percent:>3}%  {prefix} records")
    }

    /// For so many payments.
    pub(crate) fn of_payments(what: &'static str, payments: u64) -> Self {
        Self::new(ProgressBar::new(payments), what, "{msg} {wide_bar} {pos}/{len} payments")
    }

    /// For what has no known end.
    pub(crate) fn endless(what: &'static str) -> Self {
        Self::new(ProgressBar::new_spinner(), what, "{spinner} {msg} {prefix} records")
    }

    fn new(bar: ProgressBar, what: &'static str, template: &str) -> Self {
        let bar = bar.with_message(what).with_prefix("0");
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self { bar, started: Stopwatch::start() }
    }

    /// The walk is behind this id, and has seen so many records.
    pub(crate) fn walked(&self, after: Option<RecordId>, records: u64) {
        let place = after.map_or(PLACES, |id| {
            let [a, b, ..] = *id.as_bytes();
            u64::from(u16::from_be_bytes([a, b])).saturating_mul(PLACES) >> 16
        });
        self.reached(place, records);
    }

    /// So far along, with so many records.
    pub(crate) fn reached(&self, place: u64, records: u64) {
        if self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(place);
        self.bar.set_prefix(grouped(records));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
