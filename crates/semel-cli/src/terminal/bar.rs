//! How far a walk has come; on stderr, and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use semel::RecordId;

/// Into how many places the ids are divided to see how far a walk is.
const PLACES: u64 = 10_000;

/// A bar that is gone when it is dropped, also because of an error.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// For a walk through all ids: they are digests, so half-way through them is half-way through the records.
    pub(crate) fn of_ids(what: &'static str) -> Self {
        Self::new(ProgressBar::new(PLACES), what, "{msg} {wide_bar} {percent:>3}%  {prefix} records")
    }

    /// For so many bytes.
    pub(crate) fn of_bytes(what: &'static str, bytes: u64) -> Self {
        Self::new(ProgressBar::new(bytes), what, "{msg} {wide_bar} {percent:>3}%  {prefix} records")
    }

    /// For what has no known end.
    pub(crate) fn endless(what: &'static str) -> Self {
        let bar = Self::new(ProgressBar::new_spinner(), what, "{spinner} {msg} {prefix} records");
        bar.0.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    fn new(bar: ProgressBar, what: &'static str, template: &str) -> Self {
        let bar = bar.with_message(what).with_prefix("0");
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
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
        self.0.set_position(place);
        self.0.set_prefix(super::number::grouped(records));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
