//! How far something has come, on stderr, and only if that is a terminal; and how long it took.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use semel::RecordId;

use super::grouped;

/// Into how many places the ids are divided to see how far a walk is.
const PLACES: u64 = 10_000;
/// How a walk through records looks.
const RECORDS: &str = "{msg} {wide_bar} {percent:>3}%  {prefix} records";

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
        Self::new(ProgressBar::new(PLACES), what, RECORDS)
    }

    /// For so many bytes.
    pub(crate) fn of_bytes(what: &'static str, bytes: u64) -> Self {
        Self::new(ProgressBar::new(bytes), what, RECORDS)
    }

    /// For so many records.
    pub(crate) fn of_records(what: &'static str, records: u64) -> Self {
        Self::new(ProgressBar::new(records), what, RECORDS)
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
        let bar = styled(bar, template).with_message(what).with_prefix("0");
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

/// A bar that is there from the start.
pub(crate) fn plain(length: u64, what: &'static str, template: &str) -> ProgressBar {
    styled(ProgressBar::new(length), template).with_message(what)
}

/// The same bar, which looks as the template says.
pub(crate) fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// How long something took, from the moment when it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch measures real time, and decides nothing")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
